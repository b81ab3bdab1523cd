/* Before commit the program registers layers, parameters, activations and workspaces. */
#define HASH_NONFATAL_OOM 1 /* an entry without a table could not be added */
#include "lib/engine/model/registration.h"

#include "lib/base/array.h"
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/runtime.h"
#include "lib/optim/optimizers.h"
#include "lib/plan/strategy_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most elements of all parameters together; the most bytes of all activations, of all workspaces, and of everything
 * reserved. Below these limits no product, padding or sum that planning makes reaches 2^64. */
static const uint64_t elements_max = UINT64_C(1) << 50, bytes_max = UINT64_C(1) << 54;
enum { GROUPS_MOST = 65536 }; /* each step copies a rate of each group */

static bool fits(uint64_t sum, uint64_t more, uint64_t most)
{
    return more <= most && sum <= most - more;
}

static sluice_status registering(sluice_runtime *rt, const char *call)
{
    if (!rt) return slc_error(SLUICE_ERR_ARGUMENT, "%s: no runtime given", call);
    slc_comm_call(rt->comm, call, NULL);
    if (rt->failure.status) return slc_runtime_healthy(rt); /* a commit failed */
    if (rt->committed) return slc_error(SLUICE_ERR_ORDER, "%s: after commit; register everything before", call);
    return SLUICE_OK;
}

sluice_layer *slc_find_layer(const sluice_runtime *rt, const char *name)
{
    sluice_layer *layer;
    HASH_FIND_STR(rt->model.layers_by_name, name, layer);
    return layer;
}

sluice_status sluice_layer_add(sluice_runtime *rt, const char *name, sluice_layer **out)
{
    sluice_status status = registering(rt, "layer_add");
    if (status) return status;
    if (!name || !*name || !out) return slc_error(SLUICE_ERR_ARGUMENT, "layer_add: a name and a result are needed");
    if (slc_find_layer(rt, name)) return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\" is there already", name);

    sluice_layer *layer = calloc(1, sizeof *layer);
    bool added = layer && (layer->name = strdup(name)) && SLC_ROOM_FOR_ONE(rt->model.layers, rt->model.layer_count);
    if (added) HASH_ADD_KEYPTR(hh, rt->model.layers_by_name, layer->name, strlen(layer->name), layer);
    if (!added || !layer->hh.tbl) {
        if (layer) free(layer->name);
        free(layer);
        return slc_error(SLUICE_ERR_MEMORY, "layer \"%s\": no memory", name);
    }
    layer->rt = rt;
    layer->index = rt->model.layer_count;
    layer->forced = SLC_STRATEGIES;
    layer->precision = rt->config.precision;
    rt->model.layers[rt->model.layer_count++] = layer;
    *out = layer;
    return SLUICE_OK;
}

sluice_status sluice_layer_strategy(sluice_layer *layer, const char *strategy)
{
    sluice_status status = registering(layer ? layer->rt : NULL, "layer_strategy");
    if (status) return status;
    if (!strategy || !slc_strategy_parse(strategy, &layer->forced))
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": no strategy \"%s\"; there are " SLC_STRATEGY_NAMES(", "),
                         layer->name, strategy ? strategy : "(null)");
    if (layer->forced != SLC_ONEBIT) return SLUICE_OK;
    return slc_error_context(slc_engine_allow_onebit(layer->rt, "strategy"), "layer \"%s\"", layer->name);
}

sluice_status sluice_layer_precision(sluice_layer *layer, sluice_dtype precision)
{
    sluice_runtime *rt = layer ? layer->rt : NULL;
    sluice_status status = registering(rt, "layer_precision");
    if (status) return status;
    if ((unsigned)precision > SLUICE_BF16)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": %d is no precision; there are fp32 and bf16", layer->name,
                         (int)precision);
    for (uint32_t i = 0; i < rt->model.param_count; i++)
        if (rt->model.params[i]->layer == layer->index)
            return slc_error(SLUICE_ERR_ORDER, "layer \"%s\": its precision must be given before its first parameter",
                             layer->name);
    layer->precision = precision;
    return SLUICE_OK;
}

sluice_status sluice_layer_can_recompute(sluice_layer *layer, bool can)
{
    sluice_status status = registering(layer ? layer->rt : NULL, "layer_can_recompute");
    if (!status) layer->can_recompute = can;
    return status;
}

sluice_status sluice_runtime_layer_times_set(sluice_runtime *rt, uint32_t layer, double forward_s, double backward_s)
{
    sluice_status status = registering(rt, "layer_times_set");
    if (status) return status;
    if (layer >= rt->model.layer_count)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer_times_set: layer %u of %u; add it first", layer,
                         rt->model.layer_count);
    if (!(forward_s > 0 && backward_s > 0) || isinf(forward_s) || isinf(backward_s))
        return slc_error(SLUICE_ERR_ARGUMENT, "layer_times_set: layer \"%s\" takes %g and %g s; give times above 0",
                         rt->model.layers[layer]->name, forward_s, backward_s);
    rt->model.layers[layer]->told_s[0] = forward_s;
    rt->model.layers[layer]->told_s[1] = backward_s;
    return SLUICE_OK;
}

static bool is_time(double value)
{
    return value >= 0 && isfinite(value);
}

sluice_status sluice_runtime_stage_times_set(sluice_runtime *rt, const sluice_stage_times *times)
{
    sluice_stage_times told = {0};
    sluice_status status = registering(rt, "stage_times_set");
    if (!status && !times) status = slc_error(SLUICE_ERR_ARGUMENT, "stage_times_set: no times");
    if (!status) status = slc_sized_read("sluice_stage_times", NULL, times, sizeof told, &told);
    if (status) return status;
    if (!is_time(told.update_s) || !is_time(told.message_latency_s) || !is_time(told.message_bytes_per_s))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "stage_times_set: an update of %g s, messages of %g s and %g bytes a second; give finite "
                         "numbers of 0 or more",
                         told.update_s, told.message_latency_s, told.message_bytes_per_s);
    rt->stage.told = told;
    return SLUICE_OK;
}

sluice_status slc_registration_times(const slc_registration *model, double **out)
{
    const uint32_t layers = model->layer_count;
    *out = NULL;
    for (uint32_t l = 0; l < layers; l++)
        if (!(model->layers[l]->told_s[0] > 0)) return SLUICE_OK;
    *out = malloc(2 * (size_t)layers * sizeof **out);
    if (!*out) return slc_error(SLUICE_ERR_MEMORY, "times of %u layers", layers);
    for (uint32_t l = 0; l < layers; l++) {
        (*out)[l] = model->layers[l]->told_s[0];
        (*out)[2 * layers - 1 - l] = model->layers[l]->told_s[1];
    }
    return SLUICE_OK;
}

static char *join_name(const char *layer, const char *name)
{
    size_t bytes = strlen(layer) + strlen(name) + 2;
    char *joined = malloc(bytes);
    if (joined) snprintf(joined, bytes, "%s.%s", layer, name);
    return joined;
}

/* Each parameter begins at a multiple of a grain. */
static uint64_t padded(uint64_t elements)
{
    return (elements + SLC_GRAIN - 1) / SLC_GRAIN * SLC_GRAIN;
}

static sluice_status check_rows(const sluice_layer *layer, const sluice_param_desc *desc)
{
    if (!desc->row_elements && !desc->most_rows) return SLUICE_OK;
    if (!desc->row_elements || !desc->most_rows)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "layer \"%s\": parameter \"%s\" has row_elements %llu and most_rows %llu; give both, or "
                         "neither where the layer reads all of it",
                         layer->name, desc->name, (unsigned long long)desc->row_elements,
                         (unsigned long long)desc->most_rows);
    if (!desc->tied || desc->frozen)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "layer \"%s\": parameter \"%s\" has row_elements, which are for tied parameters that are "
                         "trained; leave them 0",
                         layer->name, desc->name);
    if (desc->count % desc->row_elements || desc->count / desc->row_elements > INT32_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "layer \"%s\": parameter \"%s\": %llu elements are no whole number of rows of %llu (at most "
                         "2^31 - 1)",
                         layer->name, desc->name, (unsigned long long)desc->count,
                         (unsigned long long)desc->row_elements);
    return SLUICE_OK;
}

static sluice_status check_param(const sluice_layer *layer, const sluice_param_desc *desc)
{
    if (!desc->name || !*desc->name)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": a parameter needs a name", layer->name);
    const uint64_t before = layer->rt->model.elements;
    if (!desc->count)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": parameter \"%s\" has 0 elements", layer->name, desc->name);
    if (!fits(before, desc->count, elements_max) || !fits(before, padded(desc->count), elements_max))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "layer \"%s\": parameter \"%s\" has %llu elements, with those before it more than 2^50; "
                         "is its count computed from a negative number?",
                         layer->name, desc->name, (unsigned long long)desc->count);
    if (desc->group >= GROUPS_MOST)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": parameter \"%s\" is of group %u; give one below %d",
                         layer->name, desc->name, desc->group, GROUPS_MOST);
    return check_rows(layer, desc);
}

sluice_status sluice_param_add(sluice_layer *layer, const sluice_param_desc *given, sluice_param **out)
{
    sluice_runtime *rt = layer ? layer->rt : NULL;
    sluice_param_desc full = {0}, *desc = &full;
    sluice_status status = registering(rt, "param_add");
    if (!status) status = slc_sized_read("sluice_param_desc", NULL, given, sizeof full, &full);
    if (!status) status = check_param(layer, desc);
    if (!status && !out) status = slc_error(SLUICE_ERR_ARGUMENT, "parameter \"%s\": no result given", desc->name);
    if (status) return status;

    char *name = join_name(layer->name, desc->name);
    sluice_param *param = calloc(1, sizeof *param), *same = NULL;
    if (!name || !param || !SLC_ROOM_FOR_ONE(rt->model.params, rt->model.param_count)) {
        status = slc_error(SLUICE_ERR_MEMORY, "parameter \"%s\": no memory", desc->name);
        goto fail;
    }
    HASH_FIND_STR(rt->model.params_by_name, name, same);
    if (same) {
        status = slc_error(SLUICE_ERR_ARGUMENT, "parameter \"%s\" is there already", name);
        goto fail;
    }
    *param = (sluice_param){.rt = rt,
                            .number = rt->model.param_count,
                            .layer = layer->index,
                            .adder = layer,
                            .name = name,
                            .count = desc->count,
                            .dtype = layer->precision,
                            .frozen = desc->frozen,
                            .no_decay = desc->no_decay,
                            .tied = desc->tied,
                            .no_backward_value = desc->no_backward_value,
                            .row_elements = desc->row_elements,
                            .most_rows = desc->most_rows,
                            .group = desc->group,
                            .rows_unit = SLC_NONE};
    HASH_ADD_KEYPTR(hh, rt->model.params_by_name, name, strlen(name), param);
    if (!param->hh.tbl) {
        status = slc_error(SLUICE_ERR_MEMORY, "parameter \"%s\": no memory", desc->name);
        goto fail;
    }
    uint64_t row_count = desc->row_elements ? desc->count / desc->row_elements : 0;
    if (param->most_rows > row_count) param->most_rows = row_count;
    rt->model.params[rt->model.param_count++] = param;
    rt->model.elements += padded(param->count);
    if (rt->model.group_count <= param->group) rt->model.group_count = param->group + 1;
    *out = param;
    return SLUICE_OK;

fail:
    free(param);
    free(name);
    return status;
}

sluice_status sluice_param_use(sluice_layer *layer, sluice_param *param)
{
    sluice_status status = registering(layer ? layer->rt : NULL, "param_use");
    if (status) return status;
    if (!param || param->rt != layer->rt)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": param_use of another runtime's parameter", layer->name);
    if (!param->tied)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "layer \"%s\" cannot use \"%s\": it was not added as tied; set .tied in its description",
                         layer->name, param->name);
    if (param->layer >= layer->index)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": \"%s\" must be a tied parameter of an earlier layer",
                         layer->name, param->name);
    for (uint32_t i = 0; i < layer->use_count; i++)
        if (layer->uses[i] == param)
            return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\" uses \"%s\" already", layer->name, param->name);
    if (!SLC_ROOM_FOR_ONE(layer->uses, layer->use_count))
        return slc_error(SLUICE_ERR_MEMORY, "layer \"%s\": no memory", layer->name);
    layer->uses[layer->use_count++] = param;
    return SLUICE_OK;
}

static char *copy_or_null(const char *text, bool *failed)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) *failed = true;
    return copy;
}

static bool is_or_none(const char *name, const sluice_layer *layer)
{
    return !name || !strcmp(name, layer->name);
}

static sluice_status too_many_bytes(const sluice_layer *layer, const char *what, const char *name, uint64_t bytes)
{
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "layer \"%s\": %s \"%s\" has %llu bytes, with those before it more than 2^54; is its size computed "
        "from a negative number?",
        layer->name, what, name, (unsigned long long)bytes);
}

/* Finds the name of a layer that is given by name or by handle; NULL if neither is. */
static sluice_status find_last(const sluice_layer *layer, const char *activation, const char *name,
                               const sluice_layer *handle, const char **out)
{
    *out = handle ? handle->name : name;
    if (handle && handle->rt != layer->rt)
        return slc_error(SLUICE_ERR_ARGUMENT, "activation \"%s\" of layer \"%s\": its last layer is another runtime's",
                         activation, layer->name);
    if (handle && !is_or_none(name, handle))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "activation \"%s\" of layer \"%s\": its last layer is \"%s\" by name and \"%s\" by handle; "
                         "give one of them",
                         activation, layer->name, name, handle->name);
    return SLUICE_OK;
}

static bool is_direction(sluice_direction direction)
{
    return direction == SLUICE_FORWARD || direction == SLUICE_BACKWARD;
}

/* Checks an activation. Layers that `desc` gives by handle are there by name afterwards. */
static sluice_status check_activation(const sluice_layer *layer, sluice_activation_desc *desc)
{
    if (!desc->name || !desc->bytes)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": activation \"%s\" of %llu bytes: give a name and bytes",
                         layer->name, desc->name ? desc->name : "(null)", (unsigned long long)desc->bytes);
    if (!is_direction(desc->first) || !is_direction(desc->last))
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "activation \"%s\" of layer \"%s\": first or last is no direction; there are forward and backward",
            desc->name, layer->name);
    if (!fits(layer->rt->model.activation_bytes, desc->bytes, bytes_max))
        return too_many_bytes(layer, "activation", desc->name, desc->bytes);
    const char **last = &desc->last_layer, **last_forward = &desc->last_forward_layer;
    sluice_status status = find_last(layer, desc->name, *last, desc->last_handle, last);
    if (!status) status = find_last(layer, desc->name, *last_forward, desc->last_forward_handle, last_forward);
    if (status) return status;
    bool own = desc->first == SLUICE_FORWARD && desc->last == SLUICE_BACKWARD && is_or_none(*last, layer) &&
               is_or_none(*last_forward, layer);
    if (!desc->recomputable || own) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "activation \"%s\" of layer \"%s\": recomputable is only what lives from its own layer's forward to "
        "its own layer's backward, and no other layer reads",
        desc->name, layer->name);
}

static void destroy_activation(sluice_activation *activation)
{
    free(activation->name);
    free(activation->last_layer);
    free(activation->last_forward_layer);
    free(activation);
}

static sluice_status add_activation(sluice_layer *layer, const void *given, sluice_activation **out)
{
    sluice_runtime *rt = layer->rt;
    sluice_activation_desc desc = {0};
    sluice_status status = slc_sized_read("sluice_activation_desc", NULL, given, sizeof desc, &desc);
    if (!status) status = check_activation(layer, &desc);
    if (status) return status;
    bool failed = false;
    sluice_activation *activation = calloc(1, sizeof *activation);
    if (!activation || !SLC_ROOM_FOR_ONE(rt->model.activations, rt->model.activation_count)) {
        free(activation);
        return slc_error(SLUICE_ERR_MEMORY, "activation \"%s\": no memory", desc.name);
    }
    *activation = (sluice_activation){.rt = rt,
                                      .index = rt->model.activation_count,
                                      .layer = layer->index,
                                      .name = join_name(layer->name, desc.name),
                                      .last_layer = copy_or_null(desc.last_layer, &failed),
                                      .last_forward_layer = copy_or_null(desc.last_forward_layer, &failed),
                                      .bytes = desc.bytes,
                                      .first = desc.first,
                                      .last = desc.last,
                                      .recomputable = desc.recomputable};
    if (failed || !activation->name) {
        destroy_activation(activation);
        return slc_error(SLUICE_ERR_MEMORY, "activation \"%s\": no memory", desc.name);
    }
    rt->model.activation_bytes += desc.bytes;
    rt->model.activations[rt->model.activation_count++] = activation;
    *out = activation;
    return SLUICE_OK;
}

sluice_status sluice_activations_add(sluice_layer *layer, const sluice_activation_desc *descs, uint32_t count,
                                     sluice_activation **out)
{
    sluice_runtime *rt = layer ? layer->rt : NULL;
    sluice_status status = registering(rt, "activations_add");
    if (status) return status;
    if (count && (!descs || !out))
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": %u activations, but no descriptions or no results given",
                         layer->name, count);
    const uint32_t before = rt->model.activation_count;
    for (uint32_t i = 0; !status && i < count; i++)
        status = add_activation(layer, (const char *)descs + i * descs->struct_size, &out[i]);
    while (status && rt->model.activation_count > before) {
        sluice_activation *added = rt->model.activations[--rt->model.activation_count];
        rt->model.activation_bytes -= added->bytes;
        destroy_activation(added);
    }
    return status;
}

sluice_status sluice_activation_add(sluice_layer *layer, const sluice_activation_desc *desc, sluice_activation **out)
{
    sluice_status status = registering(layer ? layer->rt : NULL, "activation_add");
    return status ? status : sluice_activations_add(layer, desc, 1, out);
}

static sluice_status check_workspace(const sluice_layer *layer, const sluice_workspace_desc *desc)
{
    if (!desc->name || !desc->bytes)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\": a workspace needs a name and bytes", layer->name);
    if (!is_direction(desc->direction))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "workspace \"%s\" of layer \"%s\": %d is no direction; there are forward and backward",
                         desc->name, layer->name, (int)desc->direction);
    if (!fits(layer->rt->model.workspace_bytes, desc->bytes, bytes_max))
        return too_many_bytes(layer, "workspace", desc->name, desc->bytes);
    if (desc->first > desc->last || desc->first == UINT32_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "workspace \"%s\" of layer \"%s\": lives from operation %u to %u; first = 0 and last = "
                         "UINT32_MAX are the whole slot",
                         desc->name, layer->name, desc->first, desc->last);
    return SLUICE_OK;
}

sluice_status sluice_workspace_add(sluice_layer *layer, const sluice_workspace_desc *given, sluice_workspace **out)
{
    sluice_runtime *rt = layer ? layer->rt : NULL;
    sluice_workspace_desc full = {0}, *desc = &full;
    sluice_status status = registering(rt, "workspace_add");
    if (!status) status = slc_sized_read("sluice_workspace_desc", NULL, given, sizeof full, &full);
    if (!status) status = check_workspace(layer, desc);
    if (status) return status;
    if (!out) return slc_error(SLUICE_ERR_ARGUMENT, "workspace \"%s\": no result given", desc->name);

    sluice_workspace *workspace = calloc(1, sizeof *workspace);
    if (!workspace || !SLC_ROOM_FOR_ONE(rt->model.workspaces, rt->model.workspace_count)) {
        free(workspace);
        return slc_error(SLUICE_ERR_MEMORY, "workspace \"%s\": no memory", desc->name);
    }
    *workspace = (sluice_workspace){.rt = rt,
                                    .layer = layer->index,
                                    .name = join_name(layer->name, desc->name),
                                    .bytes = desc->bytes,
                                    .direction = desc->direction,
                                    .first = desc->first,
                                    .last = desc->last};
    rt->model.workspace_bytes += desc->bytes;
    rt->model.workspaces[rt->model.workspace_count++] = workspace;
    if (!workspace->name) return slc_error(SLUICE_ERR_MEMORY, "workspace \"%s\": no memory", desc->name);
    *out = workspace;
    return SLUICE_OK;
}

static sluice_status set_shape(sluice_runtime *rt, const char *name, uint64_t most, uint64_t by_shape[], uint32_t shape,
                               uint64_t bytes)
{
    if (!shape || shape > SLUICE_SHAPES_MOST)
        return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\": shape %u; give 1 to %d", name, shape, SLUICE_SHAPES_MOST);
    if (!bytes || bytes > most)
        return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\": %llu bytes in shape %u; give 1 to %llu, with which it was added",
                         name, (unsigned long long)bytes, shape, (unsigned long long)most);
    by_shape[shape] = bytes;
    if (shape > rt->model.last_shape) rt->model.last_shape = shape;
    return SLUICE_OK;
}

sluice_status sluice_activation_shape(sluice_activation *a, uint32_t shape, uint64_t bytes)
{
    sluice_status status = registering(a ? a->rt : NULL, "activation_shape");
    return status ? status : set_shape(a->rt, a->name, a->bytes, a->shape_bytes, shape, bytes);
}

sluice_status sluice_workspace_shape(sluice_workspace *w, uint32_t shape, uint64_t bytes)
{
    sluice_status status = registering(w ? w->rt : NULL, "workspace_shape");
    return status ? status : set_shape(w->rt, w->name, w->bytes, w->shape_bytes, shape, bytes);
}

sluice_status sluice_runtime_reserve(sluice_runtime *rt, const char *what, uint64_t bytes)
{
    sluice_status status = registering(rt, "reserve");
    if (status) return status;
    if (!fits(rt->model.reserved_bytes, bytes, bytes_max))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "reserve \"%s\": %llu bytes, with those before it more than 2^54; is the size computed from a "
                         "negative number?",
                         what ? what : "", (unsigned long long)bytes);
    rt->model.reserved_bytes += bytes;
    return SLUICE_OK;
}

sluice_dtype sluice_param_dtype(const sluice_param *param)
{
    return param ? param->dtype : SLUICE_FP32;
}

/* The function may be called before commit, so it asks for the type that the job will have. */
sluice_dtype sluice_param_gradient_dtype(const sluice_param *param)
{
    if (!param) return SLUICE_FP32;
    const sluice_config *config = &param->rt->config;
    const slc_job job = {.micro_batches = config->micro_batches,
                         .each = config->accumulate == SLUICE_ACCUMULATE_EACH,
                         .wire = config->wire};
    const slc_unit unit = {.dtype = param->dtype};
    return slc_gradient_dtype(&job, &unit);
}

sluice_status slc_engine_allow_onebit(const sluice_runtime *rt, const char *what)
{
    if (rt->compression.on) return SLUICE_OK;
    char names[SLC_OPTIMIZER_NAMES_BYTES];
    return slc_error(SLUICE_ERR_ARGUMENT, "%s onebit with optimizer %s: onebit needs a compressed optimizer: %s", what,
                     rt->optimizer.name, slc_optimizer_names(SLC_OPTIMIZERS_COMPRESSED, names));
}

void slc_registration_fini(slc_registration *model)
{
    HASH_CLEAR(hh, model->layers_by_name);
    HASH_CLEAR(hh, model->params_by_name);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        free(model->layers[i]->name);
        free(model->layers[i]->units);
        free(model->layers[i]->uses);
        free(model->layers[i]);
    }
    for (uint32_t i = 0; i < model->param_count; i++) {
        free(model->params[i]->name);
        free(model->params[i]->marks);
        free(model->params[i]);
    }
    for (uint32_t i = 0; i < model->activation_count; i++) destroy_activation(model->activations[i]);
    for (uint32_t i = 0; i < model->workspace_count; i++) {
        free(model->workspaces[i]->name);
        free(model->workspaces[i]);
    }
    free(model->layers);
    free(model->params);
    free(model->activations);
    free(model->workspaces);
}
