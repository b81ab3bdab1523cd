/* A model's registration with its runtime: layers, parameters, tensors, and the memory that it reserves.
 * golden_models_test.c covers this file. */
#include "lib/model/registration.h"

#include "lib/base/status.h"
#include "lib/kernels/gemm/gemm.h"
#include "lib/model/batch/micro_batch.h"
#include "lib/model/blocks/observation.h"
#include "lib/model/cache.h"
#include "lib/model/layers/layer_run.h"
#include "lib/model/layers/layer_slots.h"

#include <stdio.h>
#include <string.h>

/* ---- Layers and parameters ---- */

static uint32_t layer_number(const sluice_model *m, const slc_param_info *info)
{
    if (info->layer == SLC_LAYER_EMBED) return 0;
    return info->layer == SLC_LAYER_BLOCK ? 1 + info->block : m->layer_count - 1;
}

/* Finds the precision of layer `name` in a list such as "head=fp32,h.0=bf16". */
static sluice_status precision_of(const char *text, const char *name, bool *given, sluice_dtype *out)
{
    size_t length = strlen(name);
    *given = false;
    while (text && *text) {
        size_t item = strcspn(text, ",");
        if (item > length && !strncmp(text, name, length) && text[length] == '=') {
            const char *value = text + length + 1;
            size_t left = item - length - 1;
            *given = true;
            *out = left == 4 && !strncmp(value, "bf16", 4) ? SLUICE_BF16 : SLUICE_FP32;
            if (left != 4 || (strncmp(value, "bf16", 4) && strncmp(value, "fp32", 4)))
                return slc_error(SLUICE_ERR_ARGUMENT, "precision of layer \"%s\": \"%.*s\"; use fp32 or bf16", name,
                                 (int)left, value);
        }
        text += item + (text[item] == ',');
    }
    return SLUICE_OK;
}

/* Checks the names in the list of precisions, each of which must be a layer's. */
static sluice_status check_precision_names(const sluice_model *m, const char *text)
{
    while (text && *text) {
        size_t item = strcspn(text, ","), length = strcspn(text, "=,");
        bool known = false;
        for (uint32_t i = 0; i < m->layer_count; i++)
            known = known || (strlen(m->layers[i].name) == length && !strncmp(text, m->layers[i].name, length));
        if (!known || length >= item)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "layers' precision \"%.*s\": write LAYER=fp32 or LAYER=bf16, where "
                             "LAYER is embed, h.0 .. h.%u or head",
                             (int)item, text, m->layer_count - 3);
        text += item + (text[item] == ',');
    }
    return SLUICE_OK;
}

static sluice_status add_layers(sluice_model *m, const char *precision)
{
    for (uint32_t i = 0; i < m->layer_count; i++) {
        slc_model_layer *layer = &m->layers[i];
        bool last = i + 1 == m->layer_count;
        layer->factor = 1;
        layer->kind = i == 0 ? SLC_LAYER_EMBED : last ? SLC_LAYER_HEAD : SLC_LAYER_BLOCK;
        snprintf(layer->name, sizeof layer->name, i == 0 ? "embed" : last ? "head" : "h.%u", i - 1);
    }
    sluice_status status = check_precision_names(m, precision);
    for (uint32_t i = 0; !status && i < m->layer_count; i++) {
        slc_model_layer *layer = &m->layers[i];
        bool given = false;
        sluice_dtype dtype = SLUICE_FP32;
        status = precision_of(precision, layer->name, &given, &dtype);
        if (!status) status = sluice_layer_add(m->rt, layer->name, &layer->layer);
        if (!status && given) status = sluice_layer_precision(layer->layer, dtype);
        if (!status && layer->kind == SLC_LAYER_BLOCK)
            status = sluice_layer_can_recompute(layer->layer, !m->evaluates_only);
    }
    return status;
}

/* Lets the head use the token table too, and every block the shared table of positions. */
static sluice_status share(sluice_model *m, const slc_param_info *info, sluice_param *param)
{
    bool table = info->place == SLC_TOKEN_TABLE && m->config.head == SLUICE_HEAD_TOKENS;
    bool positions = info->place == SLC_RELATIVE_TABLE && info->layer == SLC_LAYER_EMBED;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 1; !status && i < m->layer_count; i++) {
        slc_model_layer *layer = &m->layers[i];
        if (!(layer->kind == SLC_LAYER_HEAD ? table : positions)) continue;
        layer->params[info->place] = param;
        status = sluice_param_use(layer->layer, param);
    }
    return status;
}

static bool is_shared(const sluice_model *m, const slc_param_info *info)
{
    return info->layer == SLC_LAYER_EMBED && (info->place == SLC_RELATIVE_TABLE ||
                                              (info->place == SLC_TOKEN_TABLE && m->config.head == SLUICE_HEAD_TOKENS));
}

/* The first layer reads only the rows of its tokens from a shared token table. */
static void describe_rows(const sluice_model *m, const slc_param_info *info, sluice_param_desc *desc)
{
    if (!desc->tied || desc->frozen || info->place != SLC_TOKEN_TABLE) return;
    desc->row_elements = m->config.channels;
    desc->most_rows = slc_least(m->config.vocabulary, m->rows);
}

/* The shared table of positions is read by every block, and its rate is the head's, as in BEiT's fine-tuning. */
static uint32_t group_of(const sluice_model *m, const slc_param_info *info)
{
    const bool positions = info->place == SLC_RELATIVE_TABLE && info->layer == SLC_LAYER_EMBED;
    return positions ? m->layer_count - 1 : layer_number(m, info);
}

static sluice_status add_params(sluice_model *m)
{
    slc_param_info info;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && slc_param_info_at(&m->config, i, &info); i++) {
        slc_model_layer *layer = &m->layers[layer_number(m, &info)];
        sluice_param_desc desc = {.struct_size = sizeof(sluice_param_desc),
                                  .name = info.name,
                                  .count = info.count,
                                  .no_decay = info.no_decay,
                                  .frozen = m->evaluates_only,
                                  .tied = is_shared(m, &info),
                                  .no_backward_value =
                                      info.layer == SLC_LAYER_EMBED && info.place != SLC_EMBED_NORM_WEIGHT,
                                  .group = group_of(m, &info)};
        sluice_param *param = NULL;
        describe_rows(m, &info, &desc);
        status = sluice_param_add(layer->layer, &desc, &param);
        if (status) break;
        if (desc.row_elements) m->look_up = param;
        if (!(info.layer == SLC_LAYER_EMBED && info.place == SLC_RELATIVE_TABLE)) layer->params[info.place] = param;
        if (desc.tied) status = share(m, &info, param);
    }
    return status;
}

static bool is_own(const slc_model_layer *layer, const sluice_param *param)
{
    size_t length = strlen(layer->name);
    const char *name = sluice_param_name(param);
    return !strncmp(name, layer->name, length) && name[length] == '.';
}

/* Sets the types of the layers. A layer's type is that of its own parameters, if it has any; parameters that it shares
 * must have the same type. */
static sluice_status take_types(sluice_model *m)
{
    for (uint32_t i = 0; i < m->layer_count; i++) {
        slc_model_layer *layer = &m->layers[i];
        const sluice_param *own = NULL, *shared = NULL;
        for (int p = 1; p < SLC_PARAM_PLACES; p++) {
            if (!layer->params[p]) continue;
            if (is_own(layer, layer->params[p]))
                own = layer->params[p];
            else
                shared = layer->params[p];
        }
        layer->dtype = sluice_param_dtype(own ? own : shared);
        layer->below = i ? layer[-1].dtype : layer->dtype;
        if (shared && sluice_param_dtype(shared) != layer->dtype)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "layer \"%s\" shares parameter \"%s\", which is %s; give both layers the same precision",
                             layer->name, sluice_param_name(shared), sluice_dtype_name(sluice_param_dtype(shared)));
    }
    return SLUICE_OK;
}

/* ---- Tensors ---- */

static sluice_status add_gradients(sluice_model *m)
{
    slc_model_layer *head = &m->layers[m->layer_count - 1];
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < m->layer_count; i++) {
        sluice_dtype dtype = m->layers[i].dtype;
        if (m->gradient[dtype]) continue;
        const sluice_activation_desc desc = {.struct_size = sizeof(sluice_activation_desc),
                                             .name = dtype == SLUICE_BF16 ? "dx bf16" : "dx",
                                             .bytes = m->rows * m->config.channels * sluice_dtype_bytes(dtype),
                                             .first = SLUICE_BACKWARD,
                                             .last_layer = "embed",
                                             .last = SLUICE_BACKWARD};
        status = sluice_activation_add(head->layer, &desc, &m->gradient[dtype]);
        if (!status) status = slc_layer_shape_rows(m, m->gradient[dtype], desc.bytes);
    }
    return status;
}

static sluice_status add_mask(sluice_model *m)
{
    const char *last = m->layers[m->layer_count - 2].name;
    if (slc_model_sees(&m->config) || m->cache.room) return SLUICE_OK;
    const sluice_activation_desc desc = {.struct_size = sizeof(sluice_activation_desc),
                                         .name = "attention mask",
                                         .bytes = m->rows,
                                         /* backward comes to the first block last */
                                         .last_layer = m->evaluates_only ? last : m->layers[1].name,
                                         .last = m->evaluates_only ? SLUICE_FORWARD : SLUICE_BACKWARD,
                                         .last_forward_layer = last};
    sluice_status status = sluice_activation_add(m->layers[0].layer, &desc, &m->mask);
    return status ? status : slc_layer_shape_rows(m, m->mask, desc.bytes);
}

static sluice_status add_tensors(sluice_model *m)
{
    sluice_status status = m->evaluates_only ? SLUICE_OK : add_gradients(m);
    if (!status) status = add_mask(m);
    for (uint32_t i = 0; !status && i < m->layer_count; i++) status = slc_layer_slots_register(m, i);
    return status;
}

/* ---- Memory ---- */

/* Reserves the memory that GEMM allocates for itself on a host whose processor lacks AVX-512; else GEMM uses only the
 * layers' scratch. */
static sluice_status reserve_for_products(sluice_model *m)
{
    bool own = false;
    if (m->apart) return SLUICE_OK;
    for (uint32_t i = 0; i < m->layer_count; i++) {
        bool widened, allocates;
        const char *name;
        sluice_status status = slc_gemm_path(m->layers[i].dtype, &widened, &allocates, &name);
        if (status) return status;
        own = own || allocates;
    }
    if (!own) return SLUICE_OK;
    return sluice_runtime_reserve(m->rt, "GEMM's own buffers", (uint64_t)SLC_GEMM_OWN_BYTES * m->stream->threads);
}

sluice_status slc_model_register(sluice_model *m, const char *precision)
{
    sluice_status status = add_layers(m, precision);
    if (!status) status = add_params(m);
    if (!status) status = take_types(m);
    if (!status) status = add_tensors(m);
    if (!status) status = reserve_for_products(m);
    if (!status) status = slc_model_cache_reserve(m);
    if (!status) status = slc_observation_reserve(m);
    return status ? status : slc_micro_batch_reserve(m);
}
