/* From registration to a job: parameters of a layer lie in one unit (frozen ones in a second), those of small
 * neighbouring layers may lie in one together; a tied parameter is a unit of its own, and where its uses are split the
 * look-up's rows are another. Each starts at a multiple of 16 elements; a unit is padded to a multiple of 16 * N. */
#include "lib/engine/rows/look_up.h"

#include "lib/base/status.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/onebit/phase.h"
#include "lib/plan/fused_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

slc_part slc_unit_part(const slc_unit *unit, uint32_t world, uint64_t block, uint32_t rank)
{
    return slc_part_of_rank(unit->elements, unit->block_elements, block, world, rank);
}

slc_part slc_part_of_param(const slc_part *part, const sluice_param *param)
{
    uint64_t first = param->first > part->first ? param->first : part->first;
    uint64_t end = param->first + param->count, part_end = part->first + part->count;
    if (part_end < end) end = part_end;
    if (first >= end) return (slc_part){0};
    return (slc_part){first, end - first, part->shard_first + (first - part->first)};
}

/* What a unit is made of: own parameters of layers first to last, trainable or frozen ones; or a tied parameter, which
 * is trainable among the others where an optimizer exchanges all as one. */
typedef struct {
    uint32_t first, last;
    bool frozen;
    const sluice_param *tied;
} origin;

static bool stands_alone(const sluice_param *param)
{
    return param->tied && (param->frozen || !param->rt->fuses);
}

static bool belongs(const sluice_param *param, const origin *from)
{
    if (from->tied) return param == from->tied;
    return param->layer >= from->first && param->layer <= from->last && param->frozen == from->frozen &&
           !stands_alone(param);
}

static char *unit_name(const sluice_runtime *rt, const origin *from)
{
    const char *layer = rt->layers[from->first]->name;
    if (from->tied) return strdup(from->tied->name);
    if (from->last > from->first) return slc_fused_name(layer, rt->layers[from->last]->name);
    size_t bytes = strlen(layer) + 8;
    char *name = malloc(bytes);
    if (name) snprintf(name, bytes, "%s%s", layer, from->frozen ? ".frozen" : "");
    return name;
}

static bool read_in_backward(const sluice_runtime *rt, const origin *from, uint32_t layer)
{
    bool needed = rt->layers[layer]->can_recompute;
    for (uint32_t i = 0; i < rt->param_count; i++)
        if (rt->params[i]->layer == layer && belongs(rt->params[i], from)) needed |= !rt->params[i]->no_backward_value;
    for (uint32_t i = 0; i < rt->layers[layer]->use_count; i++) needed |= belongs(rt->layers[layer]->uses[i], from);
    return needed;
}

static bool is_split(const sluice_param *param)
{
    const sluice_runtime *rt = param->rt;
    bool used = false;
    for (uint32_t l = param->layer + 1; l < rt->layer_count; l++)
        for (uint32_t i = 0; i < rt->layers[l]->use_count; i++) used |= rt->layers[l]->uses[i] == param;
    return rt->config.tied == SLUICE_TIED_SPLIT && param->row_elements && used && !rt->fuses;
}

/* Of a split parameter the layer that looks rows up is the other unit's. */
static sluice_status add_uses(sluice_runtime *rt, slc_unit *unit, const origin *from)
{
    unit->uses = calloc(rt->layer_count, sizeof *unit->uses);
    if (!unit->uses) return slc_error(SLUICE_ERR_MEMORY, "unit \"%s\"", unit->name);
    for (uint32_t l = from->first; l <= from->last && unit->role != SLC_UNIT_SPLIT; l++)
        unit->uses[unit->use_count++] = (slc_use){l, read_in_backward(rt, from, l)};
    for (uint32_t l = from->first + 1; from->tied && l < rt->layer_count; l++)
        for (uint32_t i = 0; i < rt->layers[l]->use_count; i++)
            if (rt->layers[l]->uses[i] == from->tied) unit->uses[unit->use_count++] = (slc_use){l, true};
    unit->fused = from->last > from->first;
    if (unit->fused) slc_fused_uses_close(unit);
    return SLUICE_OK;
}

/* Makes one unit if any parameter belongs to it. */
static sluice_status make_unit(sluice_runtime *rt, const origin *from)
{
    uint32_t number = rt->job.unit_count, count = 0;
    uint64_t elements = 0, grain = (uint64_t)SLC_GRAIN * (uint64_t)rt->size;
    for (uint32_t i = 0; i < rt->param_count; i++) count += belongs(rt->params[i], from);
    if (!count) return SLUICE_OK;

    slc_unit *unit = &rt->job.units[number];
    slc_unit_state *state = &rt->units[number];
    rt->job.unit_count++;
    unit->name = unit_name(rt, from);
    state->params = calloc(count, sizeof(sluice_param *));
    if (!unit->name || !state->params) return slc_error(SLUICE_ERR_MEMORY, "unit of layer %u", from->first);
    for (uint32_t i = 0; i < rt->param_count; i++) {
        sluice_param *param = rt->params[i];
        if (!belongs(param, from)) continue;
        param->unit = number;
        param->first = elements;
        elements = round_up(elements + param->count, SLC_GRAIN);
        state->params[state->param_count++] = param;
    }
    if (rt->fuses && !from->tied && !from->frozen) elements = slc_flat_elements(elements, (uint32_t)rt->size);
    unit->elements = round_up(elements, grain);
    uint64_t block = rt->config.block_bytes / 4 / grain * grain;
    unit->block_elements = block ? block : grain;
    unit->trainable = !(from->tied ? from->tied->frozen : from->frozen);
    unit->dtype = rt->layers[from->first]->precision;
    if (from->tied && is_split(from->tied)) unit->role = SLC_UNIT_SPLIT;
    sluice_status status = add_uses(rt, unit, from);
    bool exchanged = rt->compressed && unit->trainable && unit->role == SLC_UNIT_WHOLE;
    return status || !exchanged ? status : slc_onebit_create(rt, number, rt->fuses);
}

/* Behind the unit of the parameter. */
static sluice_status make_rows_unit(sluice_runtime *rt, sluice_param *param)
{
    uint32_t number = rt->job.unit_count++, layer = param->layer;
    slc_unit *split = &rt->job.units[param->unit], *unit = &rt->job.units[number];
    size_t bytes = strlen(param->name) + sizeof "rows of ";
    char *name = malloc(bytes);
    split->partner = number;
    *unit = (slc_unit){.name = name,
                       .elements = round_up(param->most_rows * param->row_elements, SLC_GRAIN * (uint64_t)rt->size),
                       .dtype = split->dtype,
                       .trainable = true,
                       .uses = calloc(1, sizeof *unit->uses),
                       .role = SLC_UNIT_ROWS,
                       .partner = param->unit,
                       .row_elements = param->row_elements,
                       .row_count = param->count / param->row_elements,
                       .most_rows = param->most_rows};
    unit->block_elements = unit->elements;
    if (!name || !unit->uses) return slc_error(SLUICE_ERR_MEMORY, "rows of \"%s\"", param->name);
    snprintf(name, bytes, "rows of %s", param->name);
    unit->uses[unit->use_count++] = (slc_use){layer, rt->layers[layer]->can_recompute || !param->no_backward_value};
    rt->units[number].looked_up = param;
    param->rows_unit = number;
    return slc_look_up_create(rt, number);
}

static sluice_status make_tied_unit(sluice_runtime *rt, sluice_param *param)
{
    sluice_status status = make_unit(rt, &(origin){.first = param->layer, .last = param->layer, .tied = param});
    return status || !is_split(param) ? status : make_rows_unit(rt, param);
}

/* `last`: of each layer that begins a group, the last of it. */
static sluice_status make_units(sluice_runtime *rt, const uint32_t *last)
{
    uint32_t most = 2 * rt->param_count + 2 * rt->layer_count, end = 0;
    rt->job.units = calloc(most, sizeof *rt->job.units);
    rt->units = calloc(most, sizeof *rt->units);
    if (!rt->job.units || !rt->units) return slc_error(SLUICE_ERR_MEMORY, "units");
    sluice_status status = SLUICE_OK;
    for (uint32_t l = 0; !status && l < rt->layer_count; l++) {
        if (l >= end) status = make_unit(rt, &(origin){.first = l, .last = last[l]});
        if (l >= end) end = last[l] + 1;
        if (!status) status = make_unit(rt, &(origin){.first = l, .last = l, .frozen = true});
        for (uint32_t i = 0; !status && i < rt->param_count; i++)
            if (rt->params[i]->layer == l && stands_alone(rt->params[i])) status = make_tied_unit(rt, rt->params[i]);
    }
    return status;
}

static void destroy_units(sluice_runtime *rt)
{
    for (uint32_t u = 0; u < rt->job.unit_count; u++) {
        free((char *)rt->job.units[u].name);
        free(rt->job.units[u].uses);
        free(rt->units[u].params);
        free(rt->units[u].gathered);
        slc_look_up_destroy(rt->units[u].look_up);
        slc_onebit_destroy(rt->units[u].onebit);
    }
    free(rt->job.units);
    free(rt->units);
    rt->job.units = NULL;
    rt->units = NULL;
    rt->job.unit_count = 0;
}

/* What follows from the units. */
static void set_wire_and_scratch(sluice_runtime *rt)
{
    slc_job *job = &rt->job;
    uint64_t largest = 8 * slc_agreement_words(job);
    for (uint32_t u = 0; u < job->unit_count; u++) /* where all is fp32 it says nothing: the job is the same */
        if (job->units[u].dtype != SLUICE_FP32) job->wire = rt->config.wire;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        if (job->units[u].role == SLC_UNIT_ROWS) continue; /* moved in blocks of its partner */
        uint64_t block = sluice_dtype_bytes(slc_gradient_dtype(job, &job->units[u])) * job->units[u].block_elements;
        if (block > largest) largest = block;
    }
    job->scratch_bytes = slc_comm_scratch_bytes(rt->comm, largest);
}

/* All that is trainable in one unit. */
static sluice_status make_one_unit(sluice_runtime *rt, uint32_t *last)
{
    uint32_t trainable = 0;
    last[0] = rt->layer_count - 1;
    sluice_status status = make_units(rt, last);
    for (uint32_t u = 0; !status && u < rt->job.unit_count; u++) trainable += rt->job.units[u].trainable;
    for (uint32_t l = 1; !status && l < rt->layer_count; l++)
        if (rt->layers[l]->precision != rt->layers[0]->precision || rt->layers[l]->forced != rt->layers[0]->forced)
            trainable++;
    if (status || trainable <= 1) return status;
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "optimizer %s with compat exchanges all parameters as one buffer: all layers need one precision "
                     "and one strategy; or use it without compat",
                     rt->optimizer.name);
}

/* A unit for each layer first: what fusing them brings is asked about these. */
static sluice_status make_and_fuse_units(sluice_runtime *rt)
{
    uint32_t *last = calloc(rt->layer_count, sizeof *last);
    if (!last) return slc_error(SLUICE_ERR_MEMORY, "layers");
    bool any = false;
    for (uint32_t l = 0; l < rt->layer_count; l++) last[l] = l;
    sluice_status status = rt->fuses ? make_one_unit(rt, last) : make_units(rt, last);
    if (!status) set_wire_and_scratch(rt);
    if (rt->fuses) goto out;
    if (!status && rt->fuse_bytes && rt->planner.fuse) status = slc_engine_fuse_layers(rt, last);
    for (uint32_t l = 0; l < rt->layer_count; l++) any |= last[l] > l;
    if (!status && any) {
        destroy_units(rt);
        status = make_units(rt, last);
        if (!status) set_wire_and_scratch(rt);
    }
out:
    free(last);
    return status;
}

static sluice_status list_units_of_layers(sluice_runtime *rt)
{
    for (uint32_t l = 0; l < rt->layer_count; l++) {
        sluice_layer *layer = rt->layers[l];
        layer->units = calloc(rt->job.unit_count + 1, sizeof *layer->units);
        if (!layer->units) return slc_error(SLUICE_ERR_MEMORY, "layer \"%s\"", layer->name);
        for (uint32_t u = 0; u < rt->job.unit_count; u++)
            for (uint32_t i = 0; i < rt->job.units[u].use_count; i++)
                if (rt->job.units[u].uses[i].layer == l) layer->units[layer->unit_count++] = u;
    }
    return SLUICE_OK;
}

static sluice_status find_layer_index(const sluice_runtime *rt, const char *name, const char *what, uint32_t *out)
{
    for (uint32_t l = 0; l < rt->layer_count; l++)
        if (!strcmp(rt->layers[l]->name, name)) {
            *out = l;
            return SLUICE_OK;
        }
    return slc_error(SLUICE_ERR_ARGUMENT, "activation \"%s\": there is no layer \"%s\"", what, name);
}

static sluice_status make_activation_life(sluice_runtime *rt, const sluice_activation *a, slc_activation_life *life)
{
    uint32_t last = a->layer,
             last_forward = a->layer + 1 < rt->layer_count && !a->recomputable ? a->layer + 1 : a->layer;
    sluice_status status = SLUICE_OK;
    if (a->last_layer) status = find_layer_index(rt, a->last_layer, a->name, &last);
    if (a->last == SLUICE_FORWARD && a->last_layer) last_forward = last;
    if (!status && a->last_forward_layer) status = find_layer_index(rt, a->last_forward_layer, a->name, &last_forward);
    if (status) return status;
    life->recomputable = a->recomputable;
    if (a->recomputable && !rt->layers[a->layer]->can_recompute)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "activation \"%s\" is recomputable, but its layer is not: call sluice_layer_can_recompute",
                         a->name);
    life->name = a->name;
    life->bytes = a->bytes;
    life->first_slot = a->first == SLUICE_FORWARD ? slc_forward_slot(a->layer) : slc_backward_slot(&rt->job, a->layer);
    life->last_slot = a->last == SLUICE_FORWARD ? slc_forward_slot(last) : slc_backward_slot(&rt->job, last);
    life->last_forward_slot = slc_forward_slot(last_forward);
    if (life->last_slot < life->first_slot)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "activation \"%s\": its life ends, in the %s of \"%s\", before it begins, in the %s of \"%s\"; "
            "set .last (forward, if nothing is said) and .last_layer",
            a->name, a->last == SLUICE_FORWARD ? "forward" : "backward", rt->layers[last]->name,
            a->first == SLUICE_FORWARD ? "forward" : "backward", rt->layers[a->layer]->name);
    return SLUICE_OK;
}

static sluice_status make_lives(sluice_runtime *rt)
{
    slc_job *job = &rt->job;
    job->activations = calloc(rt->activation_count + 1, sizeof *job->activations);
    if (!job->activations) return slc_error(SLUICE_ERR_MEMORY, "activations");
    for (uint32_t i = 0; i < rt->activation_count; i++) {
        sluice_status status = make_activation_life(rt, rt->activations[i], &job->activations[i]);
        if (status) return status;
    }
    job->activation_count = rt->activation_count;
    return slc_engine_make_regions(rt);
}

sluice_status slc_engine_make_job(sluice_runtime *rt)
{
    slc_job *job = &rt->job;
    sluice_status status = slc_phase_commit(rt);
    if (!status) status = slc_norms_create(rt);
    if (status) return status;
    *job = (slc_job){.world = (uint32_t)rt->size,
                     .micro_batches = rt->config.micro_batches,
                     .each = rt->config.accumulate == SLUICE_ACCUMULATE_EACH,
                     .barrier = rt->config.clip > 0 || rt->config.nan == SLUICE_NAN_SKIP || rt->norm_count,
                     .norms_barrier = rt->norm_count && rt->config.clip == 0 && rt->config.nan != SLUICE_NAN_SKIP,
                     .exact = !rt->compressed,
                     .states = rt->optimizer.state_count,
                     .norm_words = rt->norm_words,
                     .layer_count = rt->layer_count,
                     .reserved_bytes = rt->reserved_bytes};
    bool *can_recompute = calloc(rt->layer_count, sizeof *can_recompute);
    job->can_recompute = can_recompute;
    job->layers = calloc(rt->layer_count, sizeof *job->layers);
    if (!job->layers || !can_recompute) return slc_error(SLUICE_ERR_MEMORY, "layers");
    for (uint32_t l = 0; l < rt->layer_count; l++) {
        job->layers[l] = rt->layers[l]->name;
        can_recompute[l] = rt->layers[l]->can_recompute;
    }

    if (rt->compressed) slc_phase_set(rt, 1);
    status = make_lives(rt);
    if (!status) status = make_and_fuse_units(rt);
    if (!status) status = slc_look_ups_commit(rt);
    return status ? status : list_units_of_layers(rt);
}

void slc_engine_destroy_job(sluice_runtime *rt)
{
    destroy_units(rt);
    free(rt->job.layers);
    free((bool *)rt->job.can_recompute);
    free(rt->job.activations);
    free(rt->job.workspaces);
    free(rt->regions);
}
