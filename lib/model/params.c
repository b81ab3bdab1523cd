/* The table of the models' parameters. A row belongs to a model if its `when` holds; its shape follows from its
 * place. golden_test.c covers this file. */
#include "lib/model/params.h"

#include <stdio.h>
#include <string.h>

typedef enum {
    ALWAYS,
    TOKEN_HEAD,
    CLASS_HEAD,
    TYPES,
    QKV_BIAS,
    MASK,
    ABSOLUTE,
    OWN_RELATIVE,
    SHARED_RELATIVE,
    SCALES,
    MEAN_POOLING,
    FIRST_POOLING
} row_condition;

typedef struct {
    slc_param_place place;
    /* The name after the model's prefix and, in a block, the block's; a name that begins with "!" is whole, without
     * prefix. */
    const char *name;
    row_condition when;
} row;

typedef struct {
    const char *prefix, *blocks;
    const row *embed, *block, *head;        /* each ends with SLC_NO_PARAM */
    const char *second_table, *second_bias; /* slc_param_second_name */
} family_rows;

#define LINEAR(place, name, when)                                                                                      \
    {place##_WEIGHT, name ".weight", ALWAYS},                                                                          \
    {                                                                                                                  \
        place##_BIAS, name ".bias", when                                                                               \
    }
#define PAIR(place, name, when)                                                                                        \
    {place##_WEIGHT, name ".weight", when},                                                                            \
    {                                                                                                                  \
        place##_BIAS, name ".bias", when                                                                               \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        SLC_NO_PARAM, NULL, ALWAYS                                                                                     \
    }

static const row gpt2_embed[] = {
    {SLC_TOKEN_TABLE, "wte.weight", ALWAYS}, {SLC_POSITION_TABLE, "wpe.weight", ALWAYS}, END};
static const row gpt2_block[] = {PAIR(SLC_NORM1, "ln_1", ALWAYS),
                                 PAIR(SLC_QKV, "attn.c_attn", ALWAYS),
                                 PAIR(SLC_PROJECTION, "attn.c_proj", ALWAYS),
                                 PAIR(SLC_NORM2, "ln_2", ALWAYS),
                                 PAIR(SLC_FC, "mlp.c_fc", ALWAYS),
                                 PAIR(SLC_MLP, "mlp.c_proj", ALWAYS),
                                 END};
static const row gpt2_head[] = {PAIR(SLC_HEAD_NORM, "ln_f", ALWAYS), END};

static const row bert_embed[] = {{SLC_TOKEN_TABLE, "embeddings.word_embeddings.weight", ALWAYS},
                                 {SLC_POSITION_TABLE, "embeddings.position_embeddings.weight", ALWAYS},
                                 {SLC_TYPE_TABLE, "embeddings.token_type_embeddings.weight", TYPES},
                                 PAIR(SLC_EMBED_NORM, "embeddings.LayerNorm", ALWAYS),
                                 END};
static const row bert_block[] = {PAIR(SLC_QUERY, "attention.self.query", ALWAYS),
                                 PAIR(SLC_KEY, "attention.self.key", ALWAYS),
                                 PAIR(SLC_VALUE, "attention.self.value", ALWAYS),
                                 PAIR(SLC_PROJECTION, "attention.output.dense", ALWAYS),
                                 PAIR(SLC_NORM1, "attention.output.LayerNorm", ALWAYS),
                                 PAIR(SLC_FC, "intermediate.dense", ALWAYS),
                                 PAIR(SLC_MLP, "output.dense", ALWAYS),
                                 PAIR(SLC_NORM2, "output.LayerNorm", ALWAYS),
                                 END};
static const row bert_head[] = {PAIR(SLC_TRANSFORM, "!cls.predictions.transform.dense", TOKEN_HEAD),
                                PAIR(SLC_HEAD_NORM, "!cls.predictions.transform.LayerNorm", TOKEN_HEAD),
                                {SLC_DECODER_BIAS, "!cls.predictions.bias", TOKEN_HEAD},
                                PAIR(SLC_TRANSFORM, "pooler.dense", CLASS_HEAD),
                                PAIR(SLC_DECODER, "!classifier", CLASS_HEAD),
                                END};

#define IMAGE_BLOCK_END                                                                                                \
    PAIR(SLC_PROJECTION, "attention.output.dense", ALWAYS), PAIR(SLC_FC, "intermediate.dense", ALWAYS),                \
        PAIR(SLC_MLP, "output.dense", ALWAYS), PAIR(SLC_NORM1, "layernorm_before", ALWAYS),                            \
        PAIR(SLC_NORM2, "layernorm_after", ALWAYS), END

static const row vit_embed[] = {{SLC_CLS_TOKEN, "embeddings.cls_token", ALWAYS},
                                {SLC_POSITION_TABLE, "embeddings.position_embeddings", ALWAYS},
                                PAIR(SLC_PATCH, "embeddings.patch_embeddings.projection", ALWAYS),
                                END};
static const row vit_block[] = {LINEAR(SLC_QUERY, "attention.attention.query", QKV_BIAS),
                                LINEAR(SLC_KEY, "attention.attention.key", QKV_BIAS),
                                LINEAR(SLC_VALUE, "attention.attention.value", QKV_BIAS), IMAGE_BLOCK_END};
static const row vit_head[] = {PAIR(SLC_HEAD_NORM, "layernorm", ALWAYS), PAIR(SLC_DECODER, "!classifier", ALWAYS), END};

static const row beit_embed[] = {
    {SLC_CLS_TOKEN, "embeddings.cls_token", ALWAYS},
    {SLC_MASK_TOKEN, "embeddings.mask_token", MASK},
    {SLC_POSITION_TABLE, "embeddings.position_embeddings", ABSOLUTE},
    PAIR(SLC_PATCH, "embeddings.patch_embeddings.projection", ALWAYS),
    {SLC_RELATIVE_TABLE, "encoder.relative_position_bias.relative_position_bias_table", SHARED_RELATIVE},
    END};
static const row beit_block[] = {
    {SLC_SCALE1, "lambda_1", SCALES},
    {SLC_SCALE2, "lambda_2", SCALES},
    LINEAR(SLC_QUERY, "attention.attention.query", QKV_BIAS),
    {SLC_KEY_WEIGHT, "attention.attention.key.weight", ALWAYS},
    LINEAR(SLC_VALUE, "attention.attention.value", QKV_BIAS),
    {SLC_RELATIVE_TABLE, "attention.attention.relative_position_bias.relative_position_bias_table", OWN_RELATIVE},
    IMAGE_BLOCK_END};
static const row beit_head[] = {
    PAIR(SLC_HEAD_NORM, "!layernorm", TOKEN_HEAD),         PAIR(SLC_DECODER, "!lm_head", TOKEN_HEAD),
    PAIR(SLC_HEAD_NORM, "pooler.layernorm", MEAN_POOLING), PAIR(SLC_HEAD_NORM, "layernorm", FIRST_POOLING),
    PAIR(SLC_DECODER, "!classifier", CLASS_HEAD),          END};

static const family_rows families[SLUICE_MODEL_FAMILIES] = {
    [SLUICE_GPT2] = {"transformer.", "h.", gpt2_embed, gpt2_block, gpt2_head, .second_table = "lm_head.weight"},
    [SLUICE_BERT] = {"bert.", "encoder.layer.", bert_embed, bert_block, bert_head,
                     .second_table = "cls.predictions.decoder.weight", .second_bias = "cls.predictions.decoder.bias"},
    [SLUICE_VIT] = {"vit.", "encoder.layer.", vit_embed, vit_block, vit_head},
    [SLUICE_BEIT] = {"beit.", "encoder.layer.", beit_embed, beit_block, beit_head},
};

const char *slc_model_prefix(sluice_model_family family)
{
    return families[family].prefix;
}

const char *slc_param_second_name(const sluice_model_config *c, slc_param_place place)
{
    const family_rows *family = &families[c->family];
    if (place == SLC_TOKEN_TABLE) return family->second_table;
    return place == SLC_DECODER_BIAS && c->head == SLUICE_HEAD_TOKENS ? family->second_bias : NULL;
}

static bool holds(const sluice_model_config *c, row_condition when)
{
    bool classes = c->head == SLUICE_HEAD_CLASSES;
    switch (when) {
    case ALWAYS: return true;
    case TOKEN_HEAD: return !classes;
    case CLASS_HEAD: return classes;
    case TYPES: return c->types > 0;
    case QKV_BIAS: return !c->no_qkv_bias;
    case MASK: return c->mask_token;
    case ABSOLUTE: return c->absolute_positions;
    case OWN_RELATIVE: return c->relative_positions;
    case SHARED_RELATIVE: return c->shared_positions;
    case SCALES: return c->layer_scale > 0;
    case MEAN_POOLING: return classes && !c->first_row_pooling;
    case FIRST_POOLING: return classes && c->first_row_pooling;
    }
    return false;
}

static uint32_t count_rows(const sluice_model_config *c, const row *rows)
{
    uint32_t count = 0;
    for (; rows->place; rows++) count += holds(c, rows->when);
    return count;
}

static const row *row_at(const sluice_model_config *c, const row *rows, uint32_t index)
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
            set_shape(info, 2, c->context, channels, 1, 1);
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

static void describe(const sluice_model_config *c, const row *from, slc_param_info *info)
{
    const family_rows *family = &families[c->family];
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
    const family_rows *family = &families[c->family];
    uint32_t in_embed = count_rows(c, family->embed), in_block = count_rows(c, family->block);
    const row *rows = family->embed;
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
