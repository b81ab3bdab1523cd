/* Configurations by name, and their checks.
 * cache_test.c covers this file. */
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/model/params.h"

#include <stdio.h>
#include <string.h>

const char *sluice_model_family_name(uint32_t family)
{
    return slc_family_of((sluice_model_family)family)->name;
}

const char *sluice_model_size_name(sluice_model_family family, uint32_t index)
{
    const slc_family_size *size = slc_family_of(family)->sizes;
    while (size && size->name && index--) size++;
    return size ? size->name : NULL;
}

static void fill_text(sluice_model_config *c, const slc_family_size *row)
{
    const slc_family *family = slc_family_of(c->family);
    c->context = row->extent;
    c->vocabulary = row->grain;
    c->epsilon = family->base.epsilon;
    c->types = family->base.types;
    if (c->types && row->grain < 1000) c->padding = row->grain - 1; /* tokens are bytes, and 0 is one of them */
    c->gelu_tanh = family->base.activation == SLC_ACTIVATION_GELU_TANH;
    if (family->causal && row->grain > 256) c->begin_token = c->end_token = row->grain; /* its last token */
}

static void fill_images(sluice_model_config *c, const slc_family_size *row)
{
    const slc_family *family = slc_family_of(c->family);
    bool small = row->extent < 224;
    c->image_size = row->extent;
    c->patch_size = row->grain;
    c->image_channels = small ? 1 : 3;
    c->classes = small ? 10 : 1000;
    c->epsilon = family->base.epsilon;
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
    char names[160];
    while (f < SLUICE_MODEL_FAMILIES && (!family || strcmp(family, sluice_model_family_name(f)))) f++;
    if (f == SLUICE_MODEL_FAMILIES)
        return slc_error(SLUICE_ERR_ARGUMENT, "there is no model \"%s\"; choose one of %s", family ? family : "",
                         slc_family_names(names, sizeof names));
    const slc_family_size *row = slc_family_of((sluice_model_family)f)->sizes;
    while (row->name && (!size || strcmp(size, row->name))) row++;
    if (!row->name) return no_such_size((sluice_model_family)f, size);
    sluice_model_config named = {.family = (sluice_model_family)f,
                                 .head = slc_usual_head((sluice_model_family)f),
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
    if (c->begin_token > c->vocabulary || c->end_token > c->vocabulary)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: begin_token and end_token must be tokens of the vocabulary of %u",
                         name, c->vocabulary);
    if (slc_family_of(c->family)->positions_after_padding && c->padding >= c->vocabulary)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "%s: padding %u is no token of the vocabulary of %u; positions come behind the row of that number", name,
            c->padding, c->vocabulary);
    return SLUICE_OK;
}

static sluice_status check_images(const sluice_model_config *c, const char *name)
{
    if (!c->image_size || !c->patch_size || !c->image_channels || c->image_size % c->patch_size)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: images of %u with patches of %u; make the first a multiple of the "
                         "other",
                         name, c->image_size, c->patch_size);
    if (c->head == SLUICE_HEAD_TOKENS && (!c->mask_token || !c->vocabulary))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: masked patches need a mask token and a vocabulary", name);
    if (c->head == SLUICE_HEAD_TOKENS && c->first_row_pooling)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: masked patches after a second norm (use_mean_pooling false) are not built", name);
    if (c->relative_positions && c->shared_positions)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: relative positions are either each block's own or shared", name);
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
    const char *const *heads = slc_family_of(c->family)->classes;
    if ((uint32_t)c->head >= SLC_HEADS || !heads[c->head])
        return slc_error(SLUICE_ERR_ARGUMENT, "%s has no head that answers with %s; give it the other one", name,
                         c->head == SLUICE_HEAD_TOKENS ? "tokens" : "classes");
    if (c->head == SLUICE_HEAD_CLASSES && !c->classes)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: at least one class is needed", name);
    if (!(c->epsilon > 0) || !(c->dropout >= 0 && c->dropout < 1) || !(c->layer_scale >= 0))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: epsilon must be positive, dropout in [0, 1), layer_scale not negative", name);
    if (!(c->drop_path >= 0 && c->drop_path < 1))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: drop_path %g is not in [0, 1)", name, c->drop_path);
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
