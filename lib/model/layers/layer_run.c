/* lib/model/golden_models_test.c covers this file. */
#include "lib/model/layers/layer_run.h"

#include "lib/base/numbers/random.h"

slc_layer_run slc_layer_run_of(sluice_model *m, uint32_t number, sluice_direction direction)
{
    return (slc_layer_run){
        .m = m, .layer = &m->layers[number], .number = number, .direction = direction, .operation = UINT32_MAX};
}

void slc_layer_run_next(slc_layer_run *run)
{
    run->operation++;
}

/* A layer reads the output of the last one before it that runs, where that lies. */
static slc_layer_tensor *tensors_of(const slc_layer_run *run, uint32_t index)
{
    slc_model_layer *layer = run->layer;
    const bool reads_below = index == SLC_SOURCE || (index == SLC_INPUT && layer->below == layer->dtype);
    if (run->scan || !run->training || !reads_below) return layer->tensors;
    while (!sluice_layer_runs(layer[-1].layer)) layer--;
    return layer->tensors;
}

void *slc_layer_run_tensor(slc_layer_run *run, uint32_t index)
{
    if (index == SLC_NO_TENSOR) return NULL;
    slc_layer_tensor *tensor = &tensors_of(run, index)[index];
    uint32_t d = run->direction, operation = run->operation;
    if (run->scan) {
        if (operation < tensor->first[d]) tensor->first[d] = operation;
        if (operation > tensor->last[d]) tensor->last[d] = operation;
        return NULL;
    }
    return tensor->kept ? sluice_activation_data(tensor->activation) : sluice_workspace_data(tensor->space[d]);
}

void *slc_layer_run_scratch(slc_layer_run *run, uint64_t bytes)
{
    uint64_t *most = &run->layer->scratch[run->direction][run->operation].bytes;
    if (run->scan) {
        if (bytes > *most) *most = bytes;
        return NULL;
    }
    return *most ? sluice_workspace_data(run->layer->scratch[run->direction][run->operation].space) : NULL;
}

const void *slc_layer_run_value(slc_layer_run *run, slc_param_place place)
{
    sluice_param *param = run->layer->params[place];
    return param && !run->scan ? sluice_param_value(param) : NULL;
}

void *slc_layer_run_gradient(slc_layer_run *run, slc_param_place place, bool *fresh)
{
    sluice_param *param = run->layer->params[place];
    *fresh = false;
    return param && !run->scan ? sluice_param_gradient_fresh(param, fresh) : NULL;
}

sluice_dtype slc_layer_run_gradient_dtype(const slc_layer_run *run, slc_param_place place)
{
    return sluice_param_gradient_dtype(run->layer->params[place]);
}

float slc_layer_run_factor(const slc_layer_run *run)
{
    return run->training ? run->layer->factor : 1;
}

bool slc_layer_run_drops(const slc_layer_run *run)
{
    return run->m->config.dropout > 0 && (run->training || run->scan);
}

/* Draws of a place of the layer. Sequences are numbered over the whole job, so that a mask does not depend on how the
 * batch is split. */
static slc_dropout draw_at(const slc_layer_run *run, double probability, uint32_t place, uint64_t per_sequence)
{
    const sluice_model *m = run->m;
    uint64_t ranks = sluice_runtime_replicas(m->rt), rank = sluice_runtime_replica(m->rt);
    uint64_t sequence = (m->micro_batch * ranks + rank) * m->sequences;
    uint64_t stream = m->step * SLC_OPERATIONS_MAX * (m->layer_count + 1ull) + run->number * SLC_OPERATIONS_MAX + place;
    uint32_t words[4];
    slc_random_block(m->dropout_seed, stream, 0, words);
    return (slc_dropout){.probability = (float)probability,
                         .seed = (uint64_t)words[1] << 32 | words[0],
                         .first = sequence * per_sequence};
}

slc_dropout slc_layer_run_dropout(const slc_layer_run *run, uint32_t place, uint64_t per_sequence)
{
    if (!slc_layer_run_drops(run)) return (slc_dropout){0};
    return draw_at(run, run->m->config.dropout, place, per_sequence);
}

/* Returns the probability with which a block's branch is left out, as timm's and transformers' linspace(0, rate,
 * layers). Blocks are the layers from 1 on. */
static double path_probability(const slc_layer_run *run)
{
    const sluice_model_config *c = &run->m->config;
    return run->number > 1 ? c->drop_path * (run->number - 1) / (c->layers - 1) : 0;
}

slc_drop_path slc_layer_run_path(const slc_layer_run *run, uint32_t place)
{
    const double probability = path_probability(run);
    if (!(probability > 0) || !(run->training || run->scan)) return (slc_drop_path){.rows = run->m->tokens};
    return (slc_drop_path){draw_at(run, probability, place, 1), run->m->tokens};
}

void slc_layer_common_tensors(sluice_model *m, slc_model_layer *layer)
{
    uint64_t elements = m->rows * m->config.channels;
    bool first = layer->kind == SLC_LAYER_EMBED, same = layer->below == layer->dtype;
    slc_layer_tensor *t = layer->tensors;
    if (!first) {
        sluice_activation *source = layer[-1].tensors[SLC_OUTPUT].activation;
        t[SLC_SOURCE] = (slc_layer_tensor){.kept = true, .activation = source};
        t[SLC_INPUT] =
            same ? t[SLC_SOURCE] : (slc_layer_tensor){.name = "input", .bytes = slc_layer_bytes(layer, elements)};
        t[SLC_GRADIENT_BELOW] = (slc_layer_tensor){.kept = true, .activation = m->gradient[layer->below]};
    }
    t[SLC_GRADIENT] = (slc_layer_tensor){.kept = true, .activation = m->gradient[layer->dtype]};
    if (layer->kind != SLC_LAYER_HEAD)
        t[SLC_OUTPUT] = (slc_layer_tensor){.name = "x", .bytes = slc_layer_bytes(layer, elements), .kept = true};
}

static uint64_t bytes_of_rows(const sluice_model *m, uint64_t bytes, uint32_t shape)
{
    return bytes / m->length * m->shape_lengths[shape];
}

sluice_status slc_layer_shape_rows(const sluice_model *m, sluice_activation *activation, uint64_t bytes)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t s = 0; !status && s < m->shape_count; s++)
        status = sluice_activation_shape(activation, s + 1, bytes_of_rows(m, bytes, s));
    return status;
}

/* Tensors of a head stay whole: chunks and answers do not follow the length. All other tensors of text have as many
 * bytes for each token. */
static bool follows_length(const slc_model_layer *layer)
{
    return layer->kind != SLC_LAYER_HEAD;
}

static sluice_status add_kept(const sluice_model *m, slc_model_layer *layer, slc_layer_tensor *tensor)
{
    bool output = tensor == &layer->tensors[SLC_OUTPUT];
    const char *until = output ? layer[1].name : layer->name;
    const sluice_activation_desc desc = {.struct_size = sizeof(sluice_activation_desc),
                                         .name = tensor->name,
                                         .bytes = tensor->bytes,
                                         .last_layer = until,
                                         .last = m->evaluates_only ? SLUICE_FORWARD : SLUICE_BACKWARD,
                                         .last_forward_layer = until,
                                         .recomputable =
                                             layer->kind == SLC_LAYER_BLOCK && !output && !m->evaluates_only};
    sluice_status status = sluice_activation_add(layer->layer, &desc, &tensor->activation);
    return status || !follows_length(layer) ? status : slc_layer_shape_rows(m, tensor->activation, tensor->bytes);
}

static sluice_status add_space(slc_model_layer *layer, const char *name, uint64_t bytes, sluice_direction direction,
                               uint32_t first, uint32_t last, sluice_workspace **out)
{
    const sluice_workspace_desc desc = {.struct_size = sizeof(sluice_workspace_desc),
                                        .name = name,
                                        .bytes = bytes,
                                        .direction = direction,
                                        .first = first,
                                        .last = last};
    return sluice_workspace_add(layer->layer, &desc, out);
}

/* Without a backward, a tensor is kept only if it is written or read outside of its layer's operations. */
static bool is_kept(const sluice_model *m, const slc_model_layer *layer, uint32_t index)
{
    const bool targets = layer->kind == SLC_LAYER_HEAD && index == SLC_TARGETS;
    return layer->tensors[index].kept && (!m->evaluates_only || index < SLC_OWN_TENSORS || targets);
}

static sluice_status take_lifetimes(sluice_model *m, uint32_t number, sluice_direction direction,
                                    slc_operations *operations)
{
    slc_layer_run run = slc_layer_run_of(m, number, direction);
    run.scan = true;
    run.training = true;
    return operations(&run);
}

/* Asks for the scratch of a pass of every size, because a smaller pass may need more than a larger one. */
static sluice_status take_passes(sluice_model *m, uint32_t number, slc_operations *forward)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t left = m->length; !status && left; left = m->tokens - 1) {
        m->rows = m->tokens = slc_model_pass(m, left);
        status = take_lifetimes(m, number, SLUICE_FORWARD, forward);
    }
    m->rows = m->tokens = m->length;
    return status;
}

static sluice_status take_slots(sluice_model *m, uint32_t number, slc_operations *forward, slc_operations *recompute,
                                slc_operations *backward)
{
    sluice_status status = take_lifetimes(m, number, SLUICE_FORWARD, forward);
    if (!status && recompute && !m->evaluates_only) status = take_lifetimes(m, number, SLUICE_FORWARD, recompute);
    if (!status && !m->evaluates_only) status = take_lifetimes(m, number, SLUICE_BACKWARD, backward);
    return status;
}

/* The scratch of a layer's operations, as the lengths up to that of each shape want it. */
typedef uint64_t shape_scratch[SLUICE_SHAPES_MOST][2][SLC_OPERATIONS_MAX];

static void note_scratch(const sluice_model *m, const slc_model_layer *layer, uint32_t length, shape_scratch scratch)
{
    for (uint32_t s = 0; s < m->shape_count; s++)
        for (uint32_t d = 0; m->shape_lengths[s] == length && d < 2; d++)
            for (uint32_t i = 0; i < SLC_OPERATIONS_MAX; i++) scratch[s][d][i] = layer->scratch[d][i].bytes;
}

/* Asks for the lifetimes and scratch of every shape of a micro-batch, the longest last, because a short one can want
 * more scratch than a long one. */
static sluice_status take_lengths(sluice_model *m, uint32_t number, slc_operations *forward, slc_operations *recompute,
                                  slc_operations *backward, shape_scratch scratch)
{
    sluice_status status = SLUICE_OK;
    for (uint64_t length = m->length_least; length && !status && length < m->length; length += m->length_step) {
        slc_model_set_shape(m, m->batch, (uint32_t)length);
        status = take_slots(m, number, forward, recompute, backward);
        note_scratch(m, &m->layers[number], (uint32_t)length, scratch);
        if (status || !m->folds) continue;
        slc_model_set_shape(m, slc_model_folded(m, (uint32_t)length), (uint32_t)length);
        status = take_slots(m, number, forward, recompute, backward);
    }
    slc_model_set_shape(m, m->batch, m->length);
    return status ? status : take_slots(m, number, forward, recompute, backward);
}

static sluice_status add_tensor_space(const sluice_model *m, slc_model_layer *layer, sluice_direction d,
                                      slc_layer_tensor *t)
{
    sluice_status status = add_space(layer, t->name, t->bytes, d, t->first[d], t->last[d], &t->space[d]);
    for (uint32_t s = 0; !status && follows_length(layer) && s < m->shape_count; s++)
        status = sluice_workspace_shape(t->space[d], s + 1, bytes_of_rows(m, t->bytes, s));
    return status;
}

/* Adds an operation's scratch. At the lengths of a shape for which the operation asks for none, it has one byte. */
static sluice_status add_scratch(const sluice_model *m, slc_model_layer *layer, sluice_direction d, uint32_t i,
                                 shape_scratch scratch)
{
    const uint64_t bytes = layer->scratch[d][i].bytes;
    sluice_workspace **space = &layer->scratch[d][i].space;
    sluice_status status = add_space(layer, "scratch", bytes, d, i, i, space);
    for (uint32_t s = 0; !status && s < m->shape_count; s++)
        status = sluice_workspace_shape(*space, s + 1, scratch[s][d][i] ? scratch[s][d][i] : 1);
    return status;
}

static sluice_status add_spaces(const sluice_model *m, slc_model_layer *layer, sluice_direction d,
                                shape_scratch scratch)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 1; !status && i < SLC_TENSORS_MAX; i++) {
        slc_layer_tensor *t = &layer->tensors[i];
        if (t->bytes && !t->kept && t->first[d] <= t->last[d]) status = add_tensor_space(m, layer, d, t);
    }
    for (uint32_t i = 0; !status && i < SLC_OPERATIONS_MAX; i++)
        if (layer->scratch[d][i].bytes) status = add_scratch(m, layer, d, i, scratch);
    return status;
}

sluice_status slc_layer_register_tensors(sluice_model *m, uint32_t number, slc_operations *forward,
                                         slc_operations *recompute, slc_operations *backward)
{
    slc_model_layer *layer = &m->layers[number];
    sluice_status status = SLUICE_OK;
    shape_scratch scratch = {0};
    for (uint32_t i = 1; !status && i < SLC_TENSORS_MAX; i++) {
        slc_layer_tensor *t = &layer->tensors[i];
        t->first[0] = t->first[1] = UINT32_MAX;
        t->kept = is_kept(m, layer, i);
        if (t->bytes && t->kept && !t->activation) status = add_kept(m, layer, t);
    }
    if (!status && m->cache.room) status = take_passes(m, number, forward);
    if (!status && !m->cache.room) status = take_lengths(m, number, forward, recompute, backward, scratch);
    if (!status) status = add_spaces(m, layer, SLUICE_FORWARD, scratch);
    if (!status) status = add_spaces(m, layer, SLUICE_BACKWARD, scratch);
    return status;
}
