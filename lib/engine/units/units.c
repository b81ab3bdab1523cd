/* Makes units. The trainable parameters of a layer lie in one unit (frozen ones in a second); those of small
 * neighbouring layers may lie in one together. A tied parameter is a unit of its own, and if its uses are split the
 * rows of its look-up are another. Each parameter starts at a multiple of 16 elements; a unit is padded to a multiple
 * of 16 * N. tests/engine/engine_rows_test.c covers this file. */
#include "lib/engine/units/units.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/rows/look_up.h"
#include "lib/engine/runtime.h"
#include "lib/plan/fused_job.h"
#include "lib/plan/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A unit is made of the own parameters of layers first to last, trainable or frozen ones, or of one tied parameter.
 * If an optimizer exchanges everything as one, a trainable tied parameter is among the others. */
typedef struct {
    uint32_t first, last;
    bool frozen;
    const sluice_param *tied;
} origin;

static bool is_alone(const sluice_param *param)
{
    return param->tied && (param->frozen || !param->rt->compression.fuses);
}

static bool belongs(const sluice_param *param, const origin *from)
{
    if (from->tied) return param == from->tied;
    return param->layer >= from->first && param->layer <= from->last && param->frozen == from->frozen &&
           !is_alone(param);
}

static char *unit_name(const sluice_runtime *rt, const origin *from)
{
    const char *layer = rt->model.layers[from->first]->name;
    if (from->tied) return strdup(from->tied->name);
    if (from->last > from->first) return slc_fused_name(layer, rt->model.layers[from->last]->name);
    size_t bytes = strlen(layer) + 8;
    char *name = malloc(bytes);
    if (name) snprintf(name, bytes, "%s%s", layer, from->frozen ? ".frozen" : "");
    return name;
}

static bool read_in_backward(const sluice_runtime *rt, const origin *from, uint32_t layer)
{
    bool needed = rt->model.layers[layer]->can_recompute;
    for (uint32_t i = 0; i < rt->model.param_count; i++)
        if (rt->model.params[i]->layer == layer && belongs(rt->model.params[i], from))
            needed |= !rt->model.params[i]->no_backward_value;
    for (uint32_t i = 0; i < rt->model.layers[layer]->use_count; i++)
        needed |= belongs(rt->model.layers[layer]->uses[i], from);
    return needed;
}

static bool is_split(const sluice_param *param)
{
    const sluice_runtime *rt = param->rt;
    bool used = false;
    for (uint32_t l = param->layer + 1; l < rt->model.layer_count; l++)
        for (uint32_t i = 0; i < rt->model.layers[l]->use_count; i++) used |= rt->model.layers[l]->uses[i] == param;
    return rt->config.tied == SLUICE_TIED_SPLIT && param->row_elements && used && !rt->compression.fuses;
}

/* Lists the layers that use a unit. The layer that looks rows up in a split parameter uses the unit of rows instead of
 * the parameter's. */
static sluice_status add_uses(sluice_runtime *rt, slc_unit *unit, const origin *from)
{
    unit->uses = calloc(rt->model.layer_count, sizeof *unit->uses);
    if (!unit->uses) return slc_error(SLUICE_ERR_MEMORY, "unit \"%s\"", unit->name);
    for (uint32_t l = from->first; l <= from->last && unit->role != SLC_UNIT_SPLIT; l++)
        unit->uses[unit->use_count++] = (slc_use){l, read_in_backward(rt, from, l)};
    for (uint32_t l = from->first + 1; from->tied && l < rt->model.layer_count; l++)
        for (uint32_t i = 0; i < rt->model.layers[l]->use_count; i++)
            if (rt->model.layers[l]->uses[i] == from->tied) unit->uses[unit->use_count++] = (slc_use){l, true};
    unit->fused = from->last > from->first;
    if (unit->fused) slc_fused_uses_close(unit);
    return SLUICE_OK;
}

/* Makes one unit if any parameter belongs to it. */
static sluice_status make_unit(sluice_runtime *rt, const origin *from)
{
    uint32_t number = rt->job.unit_count, count = 0;
    uint64_t elements = 0, grain = (uint64_t)SLC_GRAIN * (uint64_t)rt->replicas;
    for (uint32_t i = 0; i < rt->model.param_count; i++) count += belongs(rt->model.params[i], from);
    if (!count) return SLUICE_OK;

    slc_unit *unit = &rt->job.units[number];
    slc_unit_state *state = &rt->units[number];
    rt->job.unit_count++;
    unit->name = unit_name(rt, from);
    state->params = calloc(count, sizeof(sluice_param *));
    if (!unit->name || !state->params) return slc_error(SLUICE_ERR_MEMORY, "unit of layer %u", from->first);
    for (uint32_t i = 0; i < rt->model.param_count; i++) {
        sluice_param *param = rt->model.params[i];
        if (!belongs(param, from)) continue;
        param->unit = number;
        param->first = elements;
        elements = slc_round_up(elements + param->count, SLC_GRAIN);
        state->params[state->param_count++] = param;
    }
    if (rt->compression.fuses && !from->tied && !from->frozen)
        elements = slc_flat_elements(elements, (uint32_t)rt->replicas);
    unit->elements = slc_round_up(elements, grain);
    uint64_t block = rt->config.block_bytes / 4 / grain * grain;
    unit->block_elements = block ? block : grain;
    unit->trainable = !(from->tied ? from->tied->frozen : from->frozen);
    unit->dtype = rt->model.layers[from->first]->precision;
    if (from->tied && is_split(from->tied)) unit->role = SLC_UNIT_SPLIT;
    sluice_status status = add_uses(rt, unit, from);
    bool exchanged = rt->compression.on && unit->trainable && unit->role == SLC_UNIT_WHOLE;
    return status || !exchanged ? status : slc_onebit_create(rt, number, rt->compression.fuses);
}

/* The unit of rows follows that of its parameter. */
static sluice_status make_rows_unit(sluice_runtime *rt, sluice_param *param)
{
    uint32_t number = rt->job.unit_count++, layer = param->layer;
    slc_unit *split = &rt->job.units[param->unit], *unit = &rt->job.units[number];
    size_t bytes = strlen(param->name) + sizeof "rows of ";
    char *name = malloc(bytes);
    split->partner = number;
    *unit =
        (slc_unit){.name = name,
                   .elements = slc_round_up(param->most_rows * param->row_elements, SLC_GRAIN * (uint64_t)rt->replicas),
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
    unit->uses[unit->use_count++] =
        (slc_use){layer, rt->model.layers[layer]->can_recompute || !param->no_backward_value};
    rt->units[number].looked_up = param;
    param->rows_unit = number;
    return slc_look_up_create(rt, number);
}

static sluice_status make_units(sluice_runtime *rt, const uint32_t *last)
{
    uint32_t most = 2 * rt->model.param_count + 2 * rt->model.layer_count, end = 0;
    rt->job.units = calloc(most, sizeof *rt->job.units);
    rt->units = calloc(most, sizeof *rt->units);
    if (!rt->job.units || !rt->units) return slc_error(SLUICE_ERR_MEMORY, "units");
    sluice_status status = SLUICE_OK;
    for (uint32_t l = 0; !status && l < rt->model.layer_count; l++) {
        if (l >= end) status = make_unit(rt, &(origin){.first = l, .last = last[l]});
        if (l >= end) end = last[l] + 1;
        if (!status) status = make_unit(rt, &(origin){.first = l, .last = l, .frozen = true});
        for (uint32_t i = 0; !status && i < rt->model.param_count; i++) {
            sluice_param *param = rt->model.params[i];
            if (param->layer != l || !is_alone(param)) continue;
            status = make_unit(rt, &(origin){.first = l, .last = l, .tied = param});
            if (!status && is_split(param)) status = make_rows_unit(rt, param);
        }
    }
    return status;
}

static void destroy_units(slc_unit *units, slc_unit_state *states, uint32_t count)
{
    for (uint32_t u = 0; u < count; u++) {
        free((char *)units[u].name);
        free(units[u].uses);
        free(states[u].params);
        free(states[u].gathered);
        slc_look_up_destroy(states[u].look_up);
        slc_onebit_destroy(states[u].onebit);
    }
    free(units);
    free(states);
}

void slc_units_destroy(sluice_runtime *rt)
{
    destroy_units(rt->job.units, rt->units, rt->job.unit_count);
    rt->job.units = NULL;
    rt->units = NULL;
    rt->job.unit_count = 0;
}

/* Sets the type on the wire and the bytes of scratch, which follow from the units. */
static void set_wire_and_scratch(sluice_runtime *rt)
{
    slc_job *job = &rt->job;
    uint64_t largest = 8 * slc_agreement_words(job);
    for (uint32_t u = 0; u < job->unit_count;
         u++) /* if all is fp32 the setting has no effect, so the job is the same */
        if (job->units[u].dtype != SLUICE_FP32) job->wire = rt->config.wire;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        if (slc_looks_up(&job->units[u])) continue; /* its rows move in blocks of its partner */
        const slc_unit *unit = &job->units[u];
        uint64_t elements = unit->block_elements;
        /* On a GPU blocks are long, and most units shorter. */
        if (slc_device_runs_ahead(rt->device)) elements = slc_least(elements, unit->elements);
        uint64_t block = sluice_dtype_bytes(slc_gradient_dtype(job, unit)) * elements;
        if (block > largest) largest = block;
    }
    job->scratch_bytes = slc_comm_scratch_bytes(rt->lane, largest);
}

sluice_status slc_units_make(sluice_runtime *rt, const uint32_t *last)
{
    slc_units_destroy(rt);
    sluice_status status = make_units(rt, last);
    if (!status) set_wire_and_scratch(rt);
    return status;
}

sluice_status slc_units_list_by_layer(sluice_runtime *rt)
{
    for (uint32_t l = 0; l < rt->model.layer_count; l++) {
        sluice_layer *layer = rt->model.layers[l];
        layer->unit_count = 0;
        layer->units = calloc(rt->job.unit_count + 1, sizeof *layer->units);
        if (!layer->units) return slc_error(SLUICE_ERR_MEMORY, "layer \"%s\"", layer->name);
        for (uint32_t u = 0; u < rt->job.unit_count; u++)
            for (uint32_t i = 0; i < rt->job.units[u].use_count; i++)
                if (rt->job.units[u].uses[i].layer == l) layer->units[layer->unit_count++] = u;
    }
    return SLUICE_OK;
}

/* ---- Units that are set aside ---- */

sluice_status slc_units_set_aside(sluice_runtime *rt, slc_unit_set *out)
{
    *out = (slc_unit_set){.places = calloc(rt->model.param_count, sizeof *out->places),
                          .of_layer = calloc(rt->model.layer_count, sizeof *out->of_layer)};
    if (!out->places || !out->of_layer) {
        slc_unit_set_fini(rt, out);
        return slc_error(SLUICE_ERR_MEMORY, "units");
    }
    out->units = rt->job.units;
    out->states = rt->units;
    out->count = rt->job.unit_count;
    out->scratch_bytes = rt->job.scratch_bytes;
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        out->places[p] = (slc_place_in_unit){param->unit, param->rows_unit, param->first};
    }
    for (uint32_t l = 0; l < rt->model.layer_count; l++) {
        sluice_layer *layer = rt->model.layers[l];
        out->of_layer[l] = (slc_layer_units){layer->units, layer->unit_count};
        layer->units = NULL;
        layer->unit_count = 0;
    }
    rt->job.units = NULL;
    rt->units = NULL;
    rt->job.unit_count = 0;
    return SLUICE_OK;
}

void slc_units_put_back(sluice_runtime *rt, slc_unit_set *set)
{
    slc_units_destroy(rt);
    rt->job.units = set->units;
    rt->units = set->states;
    rt->job.unit_count = set->count;
    rt->job.scratch_bytes = set->scratch_bytes;
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        sluice_param *param = rt->model.params[p];
        param->unit = set->places[p].unit;
        param->rows_unit = set->places[p].rows_unit;
        param->first = set->places[p].first;
    }
    for (uint32_t l = 0; l < rt->model.layer_count; l++) {
        sluice_layer *layer = rt->model.layers[l];
        free(layer->units);
        layer->units = set->of_layer[l].units;
        layer->unit_count = set->of_layer[l].count;
    }
    free(set->places);
    free(set->of_layer);
    *set = (slc_unit_set){0};
}

void slc_unit_set_fini(const sluice_runtime *rt, slc_unit_set *set)
{
    destroy_units(set->units, set->states, set->count);
    for (uint32_t l = 0; set->of_layer && l < rt->model.layer_count; l++) free(set->of_layer[l].units);
    free(set->places);
    free(set->of_layer);
    *set = (slc_unit_set){0};
}
