/* The parameters of a model are the rows of its family whose `when` holds; the shape of each follows from its place.
 * golden_models_test.c covers this file. */
#include "lib/model/params.h"

#include <stdio.h>
#include <string.h>

const char *slc_model_prefix(sluice_model_family family)
{
    return slc_family_of(family)->prefix;
}

const char *slc_param_second_name(const sluice_model_config *c, slc_param_place place)
{
    const slc_family *family = slc_family_of(c->family);
    if (place == SLC_TOKEN_TABLE) return family->second_table;
    return place == SLC_DECODER_BIAS && c->head == SLUICE_HEAD_TOKENS ? family->second_bias : NULL;
}

static bool holds(const sluice_model_config *c, slc_param_condition when)
{
    bool classes = c->head == SLUICE_HEAD_CLASSES;
    switch (when) {
    case SLC_PARAM_ALWAYS: return true;
    case SLC_PARAM_TOKEN_HEAD: return !classes;
    case SLC_PARAM_CLASS_HEAD: return classes;
    case SLC_PARAM_TYPES: return c->types > 0;
    case SLC_PARAM_QKV_BIAS: return !c->no_qkv_bias;
    case SLC_PARAM_MASK: return c->mask_token;
    case SLC_PARAM_ABSOLUTE: return c->absolute_positions;
    case SLC_PARAM_OWN_RELATIVE: return c->relative_positions;
    case SLC_PARAM_SHARED_RELATIVE: return c->shared_positions;
    case SLC_PARAM_SCALES: return c->layer_scale > 0;
    case SLC_PARAM_MEAN_POOLING: return classes && !c->first_row_pooling;
    case SLC_PARAM_FIRST_POOLING: return classes && c->first_row_pooling;
    }
    return false;
}

static uint32_t count_rows(const sluice_model_config *c, const slc_param_row *rows)
{
    uint32_t count = 0;
    for (; rows->place; rows++) count += holds(c, rows->when);
    return count;
}

static const slc_param_row *row_at(const sluice_model_config *c, const slc_param_row *rows, uint32_t index)
{
    for (;; rows++)
        if (holds(c, rows->when) && index-- == 0) return rows;
}

static void set_shape(slc_param_info *info, uint32_t rank, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t shape[4] = {a, b, c, d};
    info->rank = rank;
    info->count = 1;
    memcpy(info->shape, shape, sizeof shape);
    for (uint32_t i = 0; i < rank; i++) info->count *= shape[i];
}

/* GPT-2's Conv1D stores its matrices inputs first. */
static void set_matrix(const sluice_model_config *c, slc_param_info *info, uint64_t inputs, uint64_t outputs)
{
    bool inputs_first = slc_family_of(c->family)->inputs_first;
    set_shape(info, 2, inputs_first ? inputs : outputs, inputs_first ? outputs : inputs, 1, 1);
}

static uint64_t answers(const sluice_model_config *c)
{
    return c->head == SLUICE_HEAD_CLASSES ? c->classes : c->vocabulary;
}

static void describe_shape(const sluice_model_config *c, slc_param_info *info)
{
    uint64_t channels = c->channels, side = c->patch_size ? c->image_size / c->patch_size : 0;
    switch (info->place) {
    case SLC_TOKEN_TABLE: set_shape(info, 2, c->vocabulary, channels, 1, 1); return;
    case SLC_POSITION_TABLE:
        if (slc_model_sees(c))
            set_shape(info, 3, 1, 1 + slc_model_patches(c), channels, 1);
        else
            set_shape(info, 2, slc_model_position_rows(c), channels, 1, 1);
        return;
    case SLC_TYPE_TABLE: set_shape(info, 2, c->types, channels, 1, 1); return;
    case SLC_CLS_TOKEN:
    case SLC_MASK_TOKEN: set_shape(info, 3, 1, 1, channels, 1); return;
    case SLC_PATCH_WEIGHT: set_shape(info, 4, channels, c->image_channels, c->patch_size, c->patch_size); return;
    case SLC_QKV_WEIGHT: set_matrix(c, info, channels, 3 * channels); return;
    case SLC_QKV_BIAS: set_shape(info, 1, 3 * channels, 1, 1, 1); return;
    case SLC_QUERY_WEIGHT:
    case SLC_KEY_WEIGHT:
    case SLC_VALUE_WEIGHT:
    case SLC_TRANSFORM_WEIGHT:
    case SLC_PROJECTION_WEIGHT: set_matrix(c, info, channels, channels); return;
    case SLC_FC_WEIGHT: set_matrix(c, info, channels, c->hidden); return;
    case SLC_FC_BIAS: set_shape(info, 1, c->hidden, 1, 1, 1); return;
    case SLC_MLP_WEIGHT: set_matrix(c, info, c->hidden, channels); return;
    case SLC_RELATIVE_TABLE: set_shape(info, 2, (2 * side - 1) * (2 * side - 1) + 3, c->heads, 1, 1); return;
    case SLC_DECODER_WEIGHT: set_matrix(c, info, channels, answers(c)); return;
    case SLC_DECODER_BIAS: set_shape(info, 1, answers(c), 1, 1, 1); return;
    default: set_shape(info, 1, channels, 1, 1, 1); return;
    }
}

static slc_first_value first_value(const sluice_model_config *c, const slc_param_info *info)
{
    switch (info->place) {
    case SLC_EMBED_NORM_WEIGHT:
    case SLC_NORM1_WEIGHT:
    case SLC_NORM2_WEIGHT:
    case SLC_TRUNK_NORM_WEIGHT:
    case SLC_HEAD_NORM_WEIGHT: return SLC_FIRST_ONE;
    case SLC_SCALE1:
    case SLC_SCALE2: return SLC_FIRST_SCALE;
    case SLC_PROJECTION_WEIGHT:
    case SLC_MLP_WEIGHT: return slc_family_of(c->family)->scaled_residual ? SLC_FIRST_RESIDUAL : SLC_FIRST_NORMAL;
    case SLC_RELATIVE_TABLE: return SLC_FIRST_ZERO;
    case SLC_CLS_TOKEN: return slc_family_of(c->family)->drawn_cls ? SLC_FIRST_NORMAL : SLC_FIRST_ZERO;
    case SLC_MASK_TOKEN: return SLC_FIRST_ZERO;
    default: return info->rank > 1 ? SLC_FIRST_NORMAL : SLC_FIRST_ZERO;
    }
}

static void describe(const sluice_model_config *c, const slc_param_row *from, slc_param_info *info)
{
    const slc_family *family = slc_family_of(c->family);
    const char *name = from->name;
    bool whole = *name == '!';
    name += whole;
    info->place = from->place;
    snprintf(info->name, sizeof info->name, "%s", name);
    if (info->layer == SLC_LAYER_BLOCK)
        snprintf(info->full_name, sizeof info->full_name, "%s%s%u.%s", family->prefix, family->blocks, info->block,
                 name);
    else
        snprintf(info->full_name, sizeof info->full_name, "%s%s", whole ? "" : family->prefix, name);
    describe_shape(c, info);
    info->first = first_value(c, info);
    info->no_decay = info->rank == 1 || info->place == SLC_CLS_TOKEN || info->place == SLC_MASK_TOKEN;
}

bool slc_param_info_at(const sluice_model_config *c, uint32_t index, slc_param_info *out)
{
    const slc_family *family = slc_family_of(c->family);
    uint32_t in_embed = count_rows(c, family->embed), in_block = count_rows(c, family->block);
    const slc_param_row *rows = family->embed;
    *out = (slc_param_info){.layer = SLC_LAYER_EMBED};
    if (index >= in_embed) {
        index -= in_embed;
        rows = family->block;
        *out = (slc_param_info){.layer = SLC_LAYER_BLOCK, .block = index / in_block};
        if (index >= in_block * c->layers) {
            index -= in_block * c->layers;
            rows = family->head;
            *out = (slc_param_info){.layer = SLC_LAYER_HEAD};
            if (index >= count_rows(c, family->head)) return false;
        } else {
            index %= in_block;
        }
    }
    describe(c, row_at(c, rows, index), out);
    return true;
}

uint64_t sluice_model_param_count(const sluice_model_config *given)
{
    uint64_t total = 0;
    sluice_model_config config;
    slc_param_info info;
    if (slc_model_config_take(given, &config)) return 0;
    for (uint32_t i = 0; slc_param_info_at(&config, i, &info); i++) total += info.count;
    return total;
}
