/* The models' sizes by name, and the checks of a configuration. cache_test.c covers this file. */
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/model/params.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    uint32_t layers, channels, heads;
    uint32_t extent; /* context or image_size */
    uint32_t grain;  /* vocabulary or patch_size */
} size_row;

enum { SIZES_MAX = 7 };

/* Small sizes work on bytes (BERT: and its special tokens), or on small grey images. */
#define SMALL_TEXT(extent, vocabulary)                                                                                 \
    {"nano", 4, 64, 4, extent, vocabulary},                                                                            \
    {                                                                                                                  \
        "mini", 6, 192, 6, 2 * (extent), vocabulary                                                                    \
    }
#define SMALL_IMAGES                                                                                                   \
    {"nano", 4, 64, 4, 16, 4},                                                                                         \
    {                                                                                                                  \
        "mini", 6, 192, 6, 32, 4                                                                                       \
    }

/* The row after the last size has no name. */
static const size_row sizes[SLUICE_MODEL_FAMILIES][SIZES_MAX] = {
    [SLUICE_GPT2] = {SMALL_TEXT(128, 256),
                     {"small", 12, 768, 12, 1024, 50257},
                     {"medium", 24, 1024, 16, 1024, 50257},
                     {"large", 36, 1280, 20, 1024, 50257},
                     {"xl", 48, 1600, 25, 1024, 50257}},
    [SLUICE_BERT] = {SMALL_TEXT(128, 264), {"base", 12, 768, 12, 512, 30522}, {"large", 24, 1024, 16, 512, 30522}},
    [SLUICE_VIT] = {SMALL_IMAGES,
                    {"tiny", 12, 192, 3, 224, 16},
                    {"small", 12, 384, 6, 224, 16},
                    {"base", 12, 768, 12, 224, 16},
                    {"large", 24, 1024, 16, 224, 16}},
    [SLUICE_BEIT] = {SMALL_IMAGES, {"base", 12, 768, 12, 224, 16}, {"large", 24, 1024, 16, 224, 16}},
};

const char *sluice_model_family_name(uint32_t family)
{
    return slc_family_of((sluice_model_family)family)->name;
}

const char *sluice_model_size_name(sluice_model_family family, uint32_t index)
{
    return (uint32_t)family < SLUICE_MODEL_FAMILIES && index < SIZES_MAX ? sizes[family][index].name : NULL;
}

static void fill_text(sluice_model_config *c, const size_row *row)
{
    const slc_family *family = slc_family_of(c->family);
    c->context = row->extent;
    c->vocabulary = row->grain;
    c->epsilon = family->epsilon;
    c->types = family->types;
    if (c->types && row->grain < 1000) c->padding = row->grain - 1; /* tokens are bytes, and 0 is one of them */
    c->gelu_tanh = family->gelu_tanh;
    if (family->causal && row->grain > 256) c->begin_token = c->end_token = row->grain; /* its last token */
}

static void fill_images(sluice_model_config *c, const size_row *row)
{
    const slc_family *family = slc_family_of(c->family);
    bool small = row->extent < 224;
    c->image_size = row->extent;
    c->patch_size = row->grain;
    c->image_channels = small ? 1 : 3;
    c->head = SLUICE_HEAD_CLASSES;
    c->classes = small ? 10 : 1000;
    c->epsilon = family->epsilon;
    c->absolute_positions = family->absolute_positions;
    if (family->absolute_positions) return;
    c->relative_positions = true;
    c->layer_scale = c->layers > 12 ? 1e-5 : 0.1;
}

static const char type_name[] = "sluice_model_config";

static sluice_status no_such_size(sluice_model_family family, const char *size)
{
    char names[128] = "";
    const char *name;
    for (uint32_t i = 0; (name = sluice_model_size_name(family, i)) != NULL; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name);
    }
    return slc_error(SLUICE_ERR_ARGUMENT, "%s has no size \"%s\"; choose one of %s", slc_family_of(family)->name,
                     size ? size : "", names);
}

sluice_status sluice_model_config_named(const char *family, const char *size, sluice_model_config *out)
{
    uint32_t f = 0;
    while (f < SLUICE_MODEL_FAMILIES && (!family || strcmp(family, sluice_model_family_name(f)))) f++;
    if (f == SLUICE_MODEL_FAMILIES)
        return slc_error(SLUICE_ERR_ARGUMENT, "there is no model \"%s\"; choose one of gpt2, bert, vit, beit",
                         family ? family : "");
    const size_row *row = sizes[f];
    while (row->name && (!size || strcmp(size, row->name))) row++;
    if (!row->name) return no_such_size((sluice_model_family)f, size);
    sluice_model_config named = {.family = (sluice_model_family)f,
                                 .layers = row->layers,
                                 .channels = row->channels,
                                 .heads = row->heads,
                                 .hidden = 4 * row->channels};
    if (slc_model_sees(&named))
        fill_images(&named, row);
    else
        fill_text(&named, row);
    return slc_model_config_give(&named, out);
}

static sluice_status check_text(const sluice_model_config *c, const char *name)
{
    if (!c->context || !c->vocabulary)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: context and vocabulary must be positive", name);
    if (!slc_family_of(c->family)->classes && c->head != SLUICE_HEAD_TOKENS)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s answers with tokens; classes are for bert, vit and beit", name);
    if (c->begin_token > c->vocabulary || c->end_token > c->vocabulary)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: begin_token and end_token must be tokens of the vocabulary of %u",
                         name, c->vocabulary);
    return SLUICE_OK;
}

static sluice_status check_images(const sluice_model_config *c, const char *name)
{
    if (!c->image_size || !c->patch_size || !c->image_channels || c->image_size % c->patch_size)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: images of %u with patches of %u; make the first a multiple of the "
                         "other",
                         name, c->image_size, c->patch_size);
    if (!slc_family_of(c->family)->tokens && c->head != SLUICE_HEAD_CLASSES)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s answers with classes; masked patches are beit's", name);
    if (c->head == SLUICE_HEAD_TOKENS && (!c->mask_token || !c->vocabulary))
        return slc_error(SLUICE_ERR_ARGUMENT, "beit: masked patches need a mask token and a vocabulary");
    if (c->head == SLUICE_HEAD_TOKENS && c->first_row_pooling)
        return slc_error(SLUICE_ERR_ARGUMENT, "beit: masked patches after a second norm (use_mean_pooling false) are "
                                              "not built");
    if (c->relative_positions && c->shared_positions)
        return slc_error(SLUICE_ERR_ARGUMENT, "beit: relative positions are either each block's own or shared");
    return SLUICE_OK;
}

sluice_status slc_model_config_take(const sluice_model_config *given, sluice_model_config *out)
{
    *out = (sluice_model_config){0};
    if (!given) return slc_error(SLUICE_ERR_ARGUMENT, "no %s given", type_name);
    return slc_sized_read(type_name, NULL, given, sizeof *out, out);
}

sluice_status slc_model_config_give(const sluice_model_config *made, sluice_model_config *out)
{
    if (!out) return slc_error(SLUICE_ERR_ARGUMENT, "no place for a %s given", type_name);
    sluice_status status = slc_sized_check(type_name, NULL, out, sizeof *made);
    if (!status) slc_sized_write(made, sizeof *made, out);
    return status;
}

sluice_status sluice_model_config_check(const sluice_model_config *given)
{
    sluice_model_config full, *c = &full;
    sluice_status status = slc_model_config_take(given, &full);
    if (status) return status;
    const char *name = sluice_model_family_name((uint32_t)c->family);
    if (!name) return slc_error(SLUICE_ERR_ARGUMENT, "model: no family %d", (int)c->family);
    if (!c->layers || !c->channels || !c->heads || !c->hidden)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: layers, channels, heads and hidden must be positive", name);
    if (c->channels % c->heads)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: %u channels cannot be split among %u heads; make one a multiple",
                         name, c->channels, c->heads);
    if (c->head == SLUICE_HEAD_CLASSES && !c->classes)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: at least one class is needed", name);
    if (!(c->epsilon > 0) || !(c->dropout >= 0 && c->dropout < 1) || !(c->layer_scale >= 0))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: epsilon must be positive, dropout in [0, 1), layer_scale not negative", name);
    return slc_model_sees(c) ? check_images(c, name) : check_text(c, name);
}

uint32_t sluice_model_tokens(const sluice_model_config *c, uint32_t length)
{
    if (!c) return 0;
    return slc_model_sees(c) ? 1 + slc_model_patches(c) : length;
}

uint32_t sluice_model_targets(const sluice_model_config *c, uint32_t length)
{
    if (!c) return 0;
    if (c->head == SLUICE_HEAD_CLASSES) return 1;
    return slc_model_sees(c) ? slc_model_patches(c) : length;
}
