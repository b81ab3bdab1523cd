/* A model's life and its micro-batch: every layer's forward in order, then every layer's backward in reverse.
 * golden_models_test.c covers this file. */
#include "lib/model/model.h"

#include "lib/base/integer.h"
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/kernels/gemm/gemm.h"
#include "lib/model/cache.h"
#include "lib/model/blocks/kept_blocks.h"
#include "lib/model/layers/layers.h"
#include "lib/model/layers/layer_run.h"
#include "lib/model/batch/micro_batch.h"
#include "lib/model/blocks/observation.h"
#include "lib/model/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Layers and parameters ---- */

typedef struct {
    void (*tensors)(sluice_model *m, slc_model_layer *layer);
    slc_operations *forward, *recompute, *backward;
} layer_code;

static layer_code code_of(const sluice_model *m, uint32_t number)
{
    switch (m->layers[number].kind) {
    case SLC_LAYER_EMBED: return (layer_code){slc_embed_tensors, slc_embed_forward, NULL, slc_embed_backward};
    case SLC_LAYER_BLOCK:
        return (layer_code){slc_block_tensors, slc_block_forward, slc_block_recompute, slc_block_backward};
    default: break;
    }
    if (m->config.head == SLUICE_HEAD_CLASSES)
        return (layer_code){slc_class_head_tensors, slc_class_head_forward, NULL, slc_class_head_backward};
    return (layer_code){slc_token_head_tensors, slc_token_head_forward, NULL, slc_token_head_backward};
}

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
    for (uint32_t i = 0; !status && i < m->layer_count; i++) {
        const layer_code code = code_of(m, i);
        slc_layer_common_tensors(m, &m->layers[i]);
        code.tensors(m, &m->layers[i]);
        status = slc_layer_register_tensors(m, i, code.forward, code.recompute, code.backward);
    }
    return status;
}

/* ---- Life ---- */

static sluice_status check_options(const sluice_model_config *c, const sluice_model_options *o)
{
    const char *name = sluice_model_family_name((uint32_t)c->family);
    bool sees = slc_model_sees(c);
    if (!o->batch || (!sees && !o->length))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: a micro-batch needs at least one %s", name,
                         sees ? "image" : "token");
    if (sees && o->length) return slc_error(SLUICE_ERR_ARGUMENT, "%s: images have no length; leave it 0", name);
    if (o->length_step && (sees || o->cache_tokens))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: micro-batches of several lengths (length_step) are for text, without "
                         "a cache; leave it 0",
                         name);
    if (!o->length_step && (o->length_least || o->folds))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: %s goes with length_step; set it, or leave this 0", name,
                         o->folds ? "folds" : "length_least");
    if (o->length_step && (o->length_least % o->length_step || o->length_least > o->length))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: length_least is %u; it must be a multiple of %u (length_step), at most %u (length)", name,
                         o->length_least, o->length_step, o->length);
    if (!sees && o->length > c->context)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: sequences of %u tokens exceed the model's context of %u", name,
                         o->length, c->context);
    if (!(o->label_smoothing >= 0 && o->label_smoothing < 1 && (float)o->label_smoothing < 1))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: label_smoothing is %g; it must be in [0, 1)", name,
                         o->label_smoothing);
    return SLUICE_OK;
}

static sluice_status check_shapes(const sluice_model_config *c, const sluice_model_options *o)
{
    const char *name = sluice_model_family_name((uint32_t)c->family);
    const uint32_t least = o->length_least ? o->length_least : o->length_step;
    if (!o->shape_count) return SLUICE_OK;
    if (!o->shape_lengths || !o->length_step || o->folds || o->shape_count > SLUICE_SHAPES_MOST)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: %llu shapes; give at most %d shape_lengths, with length_step and without folds", name,
                         (unsigned long long)o->shape_count, SLUICE_SHAPES_MOST);
    for (uint64_t s = 0; s < o->shape_count; s++) {
        const uint32_t length = o->shape_lengths[s], longer = s ? o->shape_lengths[s - 1] : o->length;
        if (length < longer && length >= least && length % o->length_step == 0) continue;
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "%s: shape_lengths[%llu] is %u; it must be a multiple of %u (length_step), from %u up and below "
            "%u",
            name, (unsigned long long)s, length, o->length_step, least, longer);
    }
    return SLUICE_OK;
}

static sluice_status check_cache(sluice_runtime *rt, const sluice_model_config *c, const sluice_model_options *o)
{
    if (!o->cache_tokens) return SLUICE_OK;
    const char *name = slc_family_of(c->family)->name;
    if (!slc_family_of(c->family)->causal || c->head != SLUICE_HEAD_TOKENS)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: a cache of keys and values is for models that go on with a text token by token, as gpt2",
                         name);
    if (o->batch != 1 || o->cache_tokens > c->context || o->length > o->cache_tokens)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: a cache of %u tokens, with passes of %u sequences of %u; it is of one sequence, passes "
                         "are no longer than the cache, and the model's context is %u",
                         name, o->cache_tokens, o->batch, o->length, c->context);
    if (slc_device_runs_ahead(sluice_runtime_stream(rt)->device))
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: a cache of keys and values is there on \"cpu\" alone, not on %s",
                         name, sluice_runtime_device(rt));
    if (sluice_world_size(sluice_runtime_world(rt)) > 1)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: a cache of keys and values is for a world of one rank, not %d",
                         name, sluice_world_size(sluice_runtime_world(rt)));
    return SLUICE_OK;
}

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

static sluice_status register_model(sluice_model *m, const char *precision)
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

sluice_status sluice_model_create(sluice_runtime *rt, const sluice_model_config *given_config,
                                  const sluice_model_options *given_options, sluice_model **out)
{
    sluice_model_config full_config, *config = &full_config;
    sluice_model_options full_options = SLUICE_INIT(sluice_model_options), *options = &full_options;
    if (!rt || !given_options || !out)
        return slc_model_lacks("model_create", !rt ? "runtime" : out ? "options" : "place for the result");
    sluice_status status = slc_model_config_take(given_config, config);
    if (!status) status = sluice_model_config_check(config);
    if (!status) status = slc_sized_read("sluice_model_options", NULL, given_options, sizeof *options, options);
    if (!status) status = check_options(config, options);
    if (!status) status = check_shapes(config, options);
    if (!status) status = check_cache(rt, config, options);
    if (!status && options->scales_branches) status = slc_scaled_branches_check(rt, config);
    if (status) return status;
    sluice_model *m = calloc(1, sizeof *m);
    if (!m) return slc_error(SLUICE_ERR_MEMORY, "model");
    m->rt = rt;
    m->stream = sluice_runtime_stream(rt);
    m->apart = slc_device_runs_ahead(m->stream->device);
    m->config = *config;
    m->batch = options->batch;
    m->length = options->length;
    m->length_step = options->length_step;
    m->length_least = options->length_least ? options->length_least : options->length_step;
    m->folds = options->folds;
    for (uint64_t s = 0; s < options->shape_count; s++) m->shape_lengths[m->shape_count++] = options->shape_lengths[s];
    m->dropout_seed = options->dropout_seed;
    m->evaluates_only = options->evaluates_only || options->cache_tokens;
    m->scales_branches = options->scales_branches;
    m->cache.room = options->cache_tokens;
    m->label_smoothing = (float)options->label_smoothing;
    m->in_step = options->micro_batches;
    m->observation.wanted = options->observe && !m->evaluates_only;
    m->step = UINT64_MAX; /* no step has begun */
    slc_model_set_shape(m, options->batch, options->length);
    m->layer_count = config->layers + 2;
    m->layers = calloc(m->layer_count, sizeof *m->layers);
    if (!m->layers) {
        status = slc_error(SLUICE_ERR_MEMORY, "a model of %u layers", config->layers);
        goto destroy;
    }
    status = register_model(m, options->precision);
    if (!status) status = slc_micro_batch_create(m);
    if (!status) status = slc_model_cache_create(m);
    if (!status) status = slc_observation_create(m);
    if (status) goto destroy;
    *out = m;
    return SLUICE_OK;

destroy:
    sluice_model_destroy(m);
    return status;
}

void sluice_model_destroy(sluice_model *m)
{
    if (!m) return;
    slc_pinned_destroy(&m->logits_piece);
    slc_pinned_destroy(&m->cache.memory);
    slc_observation_destroy(m);
    slc_micro_batch_destroy(m);
    free(m->layers);
    free(m->new_params);
    free(m);
}

const sluice_model_config *sluice_model_get_config(const sluice_model *m)
{
    return m ? &m->config : NULL;
}

void sluice_model_check(sluice_model *m, sluice_status (*check)(void *context), void *context)
{
    if (!m) return;
    m->check = check;
    m->check_context = context;
}

/* ---- Slots ---- */

static sluice_status go_on(const sluice_model *m)
{
    if (!m->check) return SLUICE_OK;
    const uint64_t before = slc_errors_set();
    const sluice_status given = m->check(m->check_context);
    const bool has_line = slc_errors_set() != before;
    sluice_status status = slc_error_bare(given, before);
    return has_line && status == given ? status : slc_error_context(status, "the program's check");
}

static sluice_status keep_targets(sluice_model *m)
{
    sluice_activation *targets = m->layers[m->layer_count - 1].tensors[SLC_TARGETS].activation;
    return slc_copy(m->stream, sluice_activation_data(targets), m->memory->targets,
                    slc_model_head_rows(m) * sizeof(int32_t));
}

/* Does the head of a pass that only fills the cache have nothing to answer? */
static bool is_unasked(const sluice_model *m)
{
    return m->cache.room && !m->host_logits;
}

static sluice_status layer_forward(sluice_model *m, uint32_t number, bool training)
{
    const layer_code code = code_of(m, number);
    slc_layer_run slot = slc_layer_run_of(m, number, SLUICE_FORWARD);
    bool head = number + 1 == m->layer_count;
    slot.training = training;
    sluice_status status = go_on(m);
    if (!status) status = sluice_forward_begin(slot.layer->layer);
    if (!status && head && !m->cache.room) status = keep_targets(m);
    if (!status && !(head && (training || is_unasked(m)))) status = code.forward(&slot);
    return status ? status : sluice_forward_end(slot.layer->layer);
}

static sluice_status layer_recompute(sluice_model *m, uint32_t number)
{
    slc_layer_run slot = slc_layer_run_of(m, number, SLUICE_FORWARD);
    slot.training = true;
    sluice_status status = sluice_recompute_begin(slot.layer->layer);
    if (!status) status = code_of(m, number).recompute(&slot);
    return status ? status : sluice_recompute_end(slot.layer->layer);
}

static sluice_status layer_backward(sluice_model *m, uint32_t number)
{
    const layer_code code = code_of(m, number);
    slc_layer_run slot = slc_layer_run_of(m, number, SLUICE_BACKWARD);
    slot.training = true;
    sluice_status status = go_on(m);
    if (!status && code.recompute && sluice_layer_recomputes(slot.layer->layer)) status = layer_recompute(m, number);
    if (!status) status = sluice_backward_begin(slot.layer->layer);
    if (!status) status = code.backward(&slot);
    return status ? status : sluice_backward_end(slot.layer->layer);
}

/* ---- Calls ---- */

sluice_status slc_model_lacks(const char *call, const char *what)
{
    return slc_error(SLUICE_ERR_ARGUMENT, "%s: no %s given", call, what);
}

/* Tells the runtime of a device that has failed, which any call may notice: only the runtime knows how far the device
 * had come. */
static sluice_status tell_runtime(sluice_model *m, sluice_status status)
{
    const bool device_failed = status == SLUICE_ERR_SYSTEM && slc_device_runs_ahead(m->stream->device);
    return device_failed ? sluice_runtime_fail(m->rt, status, NULL) : status;
}

sluice_status sluice_model_forward(sluice_model *m, const sluice_batch *given)
{
    sluice_batch batch = SLUICE_INIT(sluice_batch);
    if (!m || !given) return slc_model_lacks("model_forward", m ? "micro-batch" : "model");
    sluice_status status = slc_sized_read("sluice_batch", NULL, given, sizeof batch, &batch);
    if (!status && m->evaluates_only)
        status =
            slc_error(SLUICE_ERR_UNSUPPORTED, "model_forward: the model was made with evaluates_only or a cache; it "
                                              "cannot be trained");
    if (!status && !batch.targets) status = slc_error(SLUICE_ERR_ARGUMENT, "model_forward: training needs targets");
    if (!status) status = slc_kept_blocks_check(m);
    if (!status) status = slc_micro_batch_check(m, &batch);
    if (!status) status = slc_micro_batch_check_shape(m, &batch);
    if (status) return status;
    status = slc_micro_batch_take(m, &batch); /* which refuses one that comes at another time */
    if (status) return tell_runtime(m, status);
    slc_micro_batch_pick(m);
    uint64_t step = sluice_runtime_step(m->rt);
    if (step != m->step || m->losses.told) slc_losses_forget(m);
    m->micro_batch = step == m->step ? m->micro_batch + 1 : 0;
    m->step = step;
    m->has_loss = false;
    for (uint32_t i = 0; !status && i < m->layer_count; i++)
        if (sluice_layer_runs(m->layers[i].layer)) status = layer_forward(m, i, true);
    m->in = (slc_batch_arrays){0};
    return tell_runtime(m, status);
}

/* The head's backward comes first, and copies to and from the host are done with it. */
sluice_status sluice_model_backward(sluice_model *m, double *loss)
{
    if (!m) return slc_model_lacks("model_backward", "model");
    const uint32_t head = m->layer_count - 1;
    sluice_status status = layer_backward(m, head);
    if (!status) status = slc_micro_batch_queued(m);
    for (uint32_t i = head; !status && i-- > 0;)
        if (sluice_layer_runs(m->layers[i].layer)) status = layer_backward(m, i);
    if (status) return tell_runtime(m, status);
    m->memory->owes = true;
    m->has_loss = true;
    if (!loss) return SLUICE_OK;
    status = slc_losses_collect(m);
    *loss = m->losses.last;
    return tell_runtime(m, status);
}

/* ---- A whole step ---- */

static sluice_status check_batches(const sluice_model *m, const sluice_batch *batches)
{
    if (m->evaluates_only || !m->in_step)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "model_step: the model was made %s; set sluice_model_options.micro_batches",
                         m->evaluates_only ? "with evaluates_only or a cache" : "for one micro-batch at a time");
    for (uint32_t i = 0; i < m->in_step; i++) {
        sluice_status status = batches[i].targets
                                   ? slc_micro_batch_check(m, &batches[i])
                                   : slc_error(SLUICE_ERR_ARGUMENT, "model_step: training needs targets");
        if (!status) status = slc_micro_batch_check_shape(m, &batches[i]);
        if (status) return slc_error_context(status, "micro-batch %u", i);
    }
    return SLUICE_OK;
}

static uint32_t number_of(const sluice_model *m, const sluice_layer *layer)
{
    uint32_t number = 0;
    while (m->layers[number].layer != layer) number++;
    return number;
}

/* Makes the task's micro-batch the current one. Without a pipeline it is taken when its first slot comes. The stages of
 * a pipeline tell each other of rows, so that all micro-batches are taken at once. */
static sluice_status turn_to(sluice_model *m, const sluice_batch *batches, const sluice_task *task, uint32_t *taken)
{
    const bool alone = (int)sluice_runtime_replicas(m->rt) == sluice_world_size(sluice_runtime_world(m->rt));
    const uint32_t last = alone ? task->micro_batch : m->in_step - 1;
    sluice_status status = SLUICE_OK;
    for (; !status && *taken <= last; ++*taken) {
        if (!m->apart) m->memory = &m->memories[(*taken + m->memory_count - 1) % m->memory_count];
        status = slc_micro_batch_take(m, &batches[*taken]);
        if (!status) slc_micro_batch_pick(m);
    }
    if (!status && !m->apart) slc_micro_batch_return_to(m, task->micro_batch);
    m->micro_batch = task->micro_batch;
    return status;
}

static sluice_status run_task(sluice_model *m, const sluice_task *task)
{
    const uint32_t number = number_of(m, task->layer);
    if (task->kind == SLUICE_TASK_FORWARD) return layer_forward(m, number, true);
    sluice_status status = layer_backward(m, number); /* it recomputes where it must */
    if (status || number + 1 < m->layer_count) return status;
    m->memory->owes = m->has_loss = true;
    return slc_micro_batch_queued(m);
}

sluice_status sluice_model_step(sluice_model *m, const sluice_batch *batches, bool *here)
{
    if (!m || !batches || !here)
        return slc_model_lacks("model_step", !m ? "model" : here ? "micro-batches" : "place for the result");
    sluice_task task = SLUICE_INIT(sluice_task);
    uint32_t taken = 0;
    sluice_status status = check_batches(m, batches);
    if (status) return status;
    slc_losses_forget(m);
    m->step = sluice_runtime_step(m->rt);
    m->has_loss = false;
    *here = sluice_layer_here(m->layers[m->layer_count - 1].layer);
    status = slc_kept_blocks_check(m);
    if (!status) status = sluice_step_next(m->rt, &task);
    while (!status && task.kind != SLUICE_TASK_END) {
        status = turn_to(m, batches, &task, &taken);
        if (!status) status = run_task(m, &task);
        if (!status) status = sluice_step_next(m->rt, &task);
    }
    m->in = (slc_batch_arrays){0};
    return tell_runtime(m, status);
}

sluice_status sluice_model_loss(sluice_model *m, double *loss)
{
    if (!m || !loss) return slc_model_lacks("model_loss", m ? "place for the result" : "model");
    if (!m->has_loss)
        return slc_error(SLUICE_ERR_ORDER, "model_loss: the last micro-batch has no loss yet; call it after "
                                           "sluice_model_backward, before the next sluice_model_forward");
    sluice_status status = slc_losses_collect(m);
    if (status) return tell_runtime(m, status);
    m->losses.told = true;
    *loss = m->losses.sum / (double)m->losses.count;
    return SLUICE_OK;
}

sluice_status sluice_model_evaluate(sluice_model *m, const sluice_batch *given, double *loss, float *logits)
{
    sluice_batch batch = SLUICE_INIT(sluice_batch);
    if (!m || !given || !loss)
        return slc_model_lacks("model_evaluate", !m ? "model" : given ? "place for the result" : "micro-batch");
    sluice_status status = slc_sized_read("sluice_batch", NULL, given, sizeof batch, &batch);
    if (!status && m->cache.room)
        status = slc_error(SLUICE_ERR_UNSUPPORTED, "model_evaluate: the model was made with a cache; call "
                                                   "sluice_model_extend");
    if (!status) status = slc_micro_batch_check(m, &batch);
    if (status) return status;
    m->host_logits = logits;
    status = sluice_evaluate_begin(m->rt);
    if (!status) status = slc_micro_batch_take(m, &batch);
    for (uint32_t i = 0; !status && i < m->layer_count; i++)
        if (sluice_layer_here(m->layers[i].layer)) status = layer_forward(m, i, false);
    if (!status) status = slc_micro_batch_queued(m);
    if (!status) status = sluice_evaluate_end(m->rt);
    m->host_logits = NULL;
    m->in = (slc_batch_arrays){0};
    if (!status) status = slc_micro_batch_wait(m->memory);
    if (status) return tell_runtime(m, status);
    const bool has_loss = sluice_layer_here(m->layers[m->layer_count - 1].layer) && batch.targets &&
                          (m->memory->target_count || batch.loss_divisor > 0);
    *loss = has_loss ? slc_micro_batch_loss(m->memory) : NAN;
    return SLUICE_OK;
}

/* ---- With a cache ---- */

static sluice_status check_extension(const sluice_model *m, const int32_t *tokens, uint32_t count)
{
    const slc_model_cache *cache = &m->cache;
    if (!cache->room)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "model_extend: the model has no cache; set "
                                                 "sluice_model_options.cache_tokens");
    if (!count || !tokens) return slc_error(SLUICE_ERR_ARGUMENT, "model_extend: at least one token is needed");
    if (count > cache->room - cache->tokens)
        return slc_error(SLUICE_ERR_ARGUMENT, "model_extend: %u tokens after %u are more than the cache's %u", count,
                         cache->tokens, cache->room);
    for (uint32_t i = 0; i < count; i++)
        if ((uint32_t)tokens[i] >= m->config.vocabulary)
            return slc_error(SLUICE_ERR_ARGUMENT, "model_extend: token %d at %u is outside the %u that there are",
                             tokens[i], i, m->config.vocabulary);
    return SLUICE_OK;
}

static sluice_status run_pass(sluice_model *m, const int32_t *tokens, uint32_t count, float *logits)
{
    m->rows = m->tokens = count;
    m->in = (slc_batch_arrays){.places = tokens};
    m->masked = false;
    m->host_logits = logits;
    sluice_status status = sluice_evaluate_begin(m->rt);
    for (uint32_t i = 0; !status && i < m->layer_count; i++) status = layer_forward(m, i, false);
    if (!status) status = sluice_evaluate_end(m->rt);
    m->in = (slc_batch_arrays){0};
    m->host_logits = NULL;
    return status;
}

sluice_status sluice_model_extend(sluice_model *m, const int32_t *tokens, uint32_t count, float *logits)
{
    if (!m) return slc_model_lacks("model_extend", "model");
    const uint32_t before = m->cache.tokens;
    sluice_status status = check_extension(m, tokens, count);
    for (uint32_t done = 0, pass; !status && done < count; done += pass) {
        pass = slc_model_pass(m, count - done);
        status = run_pass(m, tokens + done, pass, done + pass == count ? logits : NULL);
        if (!status) m->cache.tokens += pass;
    }
    if (status) m->cache.tokens = before;
    return status;
}

uint32_t sluice_model_cached(const sluice_model *m)
{
    return m ? m->cache.tokens : 0;
}

sluice_status sluice_model_rewind(sluice_model *m, uint32_t tokens)
{
    if (!m) return slc_model_lacks("model_rewind", "model");
    if (!m->cache.room) return slc_error(SLUICE_ERR_UNSUPPORTED, "model_rewind: the model has no cache");
    if (tokens > m->cache.tokens)
        return slc_error(SLUICE_ERR_ARGUMENT, "model_rewind: the cache holds %u tokens, not %u", m->cache.tokens,
                         tokens);
    m->cache.tokens = tokens;
    return SLUICE_OK;
}
