/* Makes a job of what was registered: units, the lives of activations, and the regions of workspaces.
 * tests/onebit/onebit_engine_test.c covers this file. */
#include "lib/engine/making/job.h"

#include "lib/base/status.h"
#include "lib/engine/model/regions.h"
#include "lib/engine/model/registration.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/regroup.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/rows/look_up.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/agreement.h"
#include "lib/engine/units/units.h"

#include <stdlib.h>

/* Puts everything trainable into one unit. */
static sluice_status make_one_unit(sluice_runtime *rt, uint32_t *last)
{
    uint32_t trainable = 0;
    last[0] = rt->model.layer_count - 1;
    sluice_status status = slc_units_make(rt, last);
    for (uint32_t u = 0; !status && u < rt->job.unit_count; u++) trainable += rt->job.units[u].trainable;
    for (uint32_t l = 1; !status && l < rt->model.layer_count; l++)
        if (rt->model.layers[l]->precision != rt->model.layers[0]->precision ||
            rt->model.layers[l]->forced != rt->model.layers[0]->forced)
            trainable++;
    if (status || trainable <= 1) return status;
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "optimizer %s with compat exchanges all parameters as one buffer: all layers need one precision "
                     "and one strategy; or use it without compat",
                     rt->optimizer.name);
}

/* Makes the units. First each layer gets a unit of its own, so that the planner can be asked what fusing these brings.
 */
static sluice_status make_and_fuse_units(sluice_runtime *rt)
{
    uint32_t *last = calloc(rt->model.layer_count, sizeof *last);
    if (!last) return slc_error(SLUICE_ERR_MEMORY, "layers");
    bool one = rt->compression.fuses, any = false;
    for (uint32_t l = 0; l < rt->model.layer_count; l++) last[l] = l;
    sluice_status status = one ? make_one_unit(rt, last) : slc_units_make(rt, last);
    const bool fuses = rt->planning.fuse_bytes || (rt->planning.kept && !slc_is_stage(&rt->stage));
    if (!status && !one && fuses && rt->planning.planner.fuse) {
        slc_plan_request request;
        status = slc_engine_first_request(rt, &request);
        if (!status) status = slc_engine_fuse_layers(rt, &request, last);
    }
    for (uint32_t l = 0; l < rt->model.layer_count; l++) any |= last[l] > l;
    if (!status && !one && any) status = slc_units_make(rt, last);
    free(last);
    return status;
}

static sluice_status make_activation_life(sluice_runtime *rt, const sluice_activation *a, slc_activation_life *life)
{
    uint32_t last = a->layer,
             last_forward = a->layer + 1 < rt->model.layer_count && !a->recomputable ? a->layer + 1 : a->layer;
    const char *const names[] = {a->last_layer, a->last_forward_layer};
    for (int i = 0; i < 2; i++) {
        const sluice_layer *layer = names[i] ? slc_find_layer(rt, names[i]) : NULL;
        if (names[i] && !layer)
            return slc_error(SLUICE_ERR_ARGUMENT, "activation \"%s\": there is no layer \"%s\"", a->name, names[i]);
        if (layer && i == 0) last = layer->index;
        if (layer && (i == 1 || a->last == SLUICE_FORWARD)) last_forward = layer->index;
    }
    life->recomputable = a->recomputable;
    if (a->recomputable && !rt->model.layers[a->layer]->can_recompute)
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
            a->name, a->last == SLUICE_FORWARD ? "forward" : "backward", rt->model.layers[last]->name,
            a->first == SLUICE_FORWARD ? "forward" : "backward", rt->model.layers[a->layer]->name);
    return SLUICE_OK;
}

static sluice_status make_lives(sluice_runtime *rt)
{
    slc_job *job = &rt->job;
    job->activations = calloc(rt->model.activation_count + 1, sizeof *job->activations);
    if (!job->activations) return slc_error(SLUICE_ERR_MEMORY, "activations");
    for (uint32_t i = 0; i < rt->model.activation_count; i++) {
        sluice_status status = make_activation_life(rt, rt->model.activations[i], &job->activations[i]);
        if (status) return status;
    }
    job->activation_count = rt->model.activation_count;
    return slc_engine_make_regions(rt);
}

sluice_status slc_engine_make_job(sluice_runtime *rt)
{
    slc_job *job = &rt->job;
    sluice_status status = slc_phase_commit(rt);
    if (!status) status = slc_norms_create(rt);
    if (status) return status;
    *job = (slc_job){.world = (uint32_t)rt->replicas,
                     .micro_batches = rt->config.micro_batches,
                     .each = rt->config.accumulate == SLUICE_ACCUMULATE_EACH,
                     .barrier = rt->config.clip > 0 || rt->config.nan == SLUICE_NAN_SKIP || rt->agreement.norm_count,
                     .norms_barrier =
                         rt->agreement.norm_count && rt->config.clip == 0 && rt->config.nan != SLUICE_NAN_SKIP,
                     .exact = !rt->compression.on,
                     .states = rt->optimizer.state_count,
                     .norm_words = rt->agreement.norm_words,
                     .layer_count = rt->model.layer_count};
    bool *can_recompute = calloc(rt->model.layer_count, sizeof *can_recompute);
    job->can_recompute = can_recompute;
    job->layers = calloc(rt->model.layer_count, sizeof *job->layers);
    if (!job->layers || !can_recompute) return slc_error(SLUICE_ERR_MEMORY, "layers");
    for (uint32_t l = 0; l < rt->model.layer_count; l++) {
        job->layers[l] = rt->model.layers[l]->name;
        can_recompute[l] = rt->model.layers[l]->can_recompute;
    }

    if (rt->compression.on) slc_phase_set(rt, 1);
    status = make_lives(rt);
    if (!status) status = make_and_fuse_units(rt);
    if (!status) status = slc_look_ups_commit(rt);
    return status ? status : slc_units_list_by_layer(rt);
}

void slc_engine_destroy_job(sluice_runtime *rt)
{
    slc_units_destroy(rt);
    free(rt->job.layers);
    free((bool *)rt->job.can_recompute);
    free(rt->job.activations);
    free(rt->job.workspaces);
    free(rt->regions);
}
