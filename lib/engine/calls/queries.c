/* Questions about a runtime, a layer or a parameter; the memory report.
 * tests/calls/every_call_test.c covers this file. */
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/measure/rss.h"
#include "lib/engine/model/regions.h"
#include "lib/engine/runtime.h"

#include <sluice/plan.h>

const char *sluice_param_name(const sluice_param *param)
{
    return param ? param->name : NULL;
}

uint64_t sluice_param_count(const sluice_param *param)
{
    return param ? param->count : 0;
}

uint32_t sluice_runtime_param_count(const sluice_runtime *rt)
{
    return rt ? rt->model.param_count : 0;
}

sluice_param *sluice_runtime_param(const sluice_runtime *rt, uint32_t index)
{
    return rt && index < rt->model.param_count ? rt->model.params[index] : NULL;
}

uint32_t sluice_runtime_replicas(const sluice_runtime *rt)
{
    return rt ? (uint32_t)rt->replicas : 0;
}

uint32_t sluice_runtime_replica(const sluice_runtime *rt)
{
    return rt ? (uint32_t)rt->replica : 0;
}

sluice_world *sluice_runtime_world(const sluice_runtime *rt)
{
    return rt ? rt->world : NULL;
}

sluice_stream *sluice_runtime_stream(const sluice_runtime *rt)
{
    return rt ? (sluice_stream *)&rt->compute : NULL;
}

void *sluice_stream_native(const sluice_stream *stream)
{
    return stream ? slc_stream_native(stream) : NULL;
}

const char *sluice_runtime_device(const sluice_runtime *rt)
{
    if (!rt) return "none";
    return slc_device_describe(slc_device_get_kind(rt->device) == SLC_DEVICE_HOST ? "cpu" : "cuda");
}

bool sluice_layer_here(const sluice_layer *layer)
{
    return layer && layer->index != SLC_NONE;
}

bool sluice_layer_recomputes(const sluice_layer *layer)
{
    return layer && layer->rt->committed && sluice_layer_here(layer) &&
           layer->rt->current.plan->recompute[layer->index];
}

bool sluice_layer_runs(const sluice_layer *layer)
{
    if (!layer) return false;
    const sluice_runtime *rt = layer->rt;
    if (rt->mode != SLC_IN_STEP || !sluice_layer_here(layer)) return true;
    return !rt->steps[rt->train.parity].left_out[layer->index];
}

uint64_t sluice_param_updates(const sluice_param *param)
{
    return param ? param->rt->step - param->missed : 0;
}

const char *sluice_layer_strategy_name(const sluice_layer *layer)
{
    const sluice_runtime *rt = layer ? layer->rt : NULL;
    uint32_t first = SLC_NONE;
    for (uint32_t p = 0; rt && rt->committed && p < rt->model.param_count; p++)
        if (rt->model.params[p]->layer == layer->index && rt->model.params[p]->unit < first)
            first = rt->model.params[p]->unit;
    return first == SLC_NONE ? "none" : slc_strategy_name(rt->units[first].strategy);
}

sluice_status sluice_runtime_memory(const sluice_runtime *rt, sluice_memory_report *report)
{
    if (!rt || !report) return slc_error(SLUICE_ERR_ARGUMENT, "runtime_memory: no runtime or no report given");
    if (!rt->committed) return slc_error(SLUICE_ERR_ORDER, "runtime_memory: before commit");
    sluice_status status = slc_sized_check("sluice_memory_report", NULL, report, sizeof *report);
    if (status) return status;
    sluice_memory_report made = {.budget_bytes = rt->current.budget_bytes,
                                 .planned_bytes = rt->memory.most_planned_bytes + rt->model.reserved_bytes,
                                 .peak_bytes = slc_arena_peak(rt->memory.arena),
                                 .rss_bytes = slc_rss_bytes(slc_arena_segment(rt->memory.arena)),
                                 .rss_commit_bytes = rt->memory.rss_commit_bytes,
                                 .pinned_bytes = slc_device_runs_ahead(rt->device) ? slc_pinned_bytes() : 0};
    for (int c = 0; c < SLC_MEMORY_CATEGORIES; c++) {
        uint64_t peak = slc_arena_category_peak(rt->memory.arena, (slc_memory_category)c);
        if (!peak) continue;
        made.categories[made.category_count++] =
            (sluice_memory_category){slc_memory_category_name((slc_memory_category)c), peak};
    }
    status = slc_engine_account_activations(rt, &made);
    if (!status) slc_sized_write(&made, sizeof made, report);
    return status;
}

sluice_status sluice_runtime_plan(const sluice_runtime *rt, sluice_plan_report *report)
{
    if (!rt || !report) return slc_error(SLUICE_ERR_ARGUMENT, "runtime_plan: no runtime or no report given");
    if (!rt->committed) return slc_error(SLUICE_ERR_ORDER, "runtime_plan: before commit");
    const slc_current_plan *now = &rt->current;
    const slc_plan_distance *distance = &now->forecast.distance;
    const sluice_plan_report made = {.number = now->number,
                                     .measured = now->measured,
                                     .provisional = rt->planning.replan_due || rt->trials.on,
                                     .schedule = now->plan->schedule,
                                     .chosen = now->member,
                                     .note = now->note,
                                     .budget_bytes = now->budget_bytes,
                                     .planned_bytes = now->plan->arena_bytes + rt->model.reserved_bytes,
                                     .dp_bytes = rt->planning.dp_bytes,
                                     .step_s = now->forecast.step_s,
                                     .compute_s = now->forecast.compute_s,
                                     .exposed_s = now->forecast.exposed_s,
                                     .communication_s = now->forecast.communication_s,
                                     .bound_s = now->forecast.bound_s,
                                     .distance_known = distance->known,
                                     .unproven_s = distance->part_s[SLC_DISTANCE_UNPROVEN],
                                     .choices_s = distance->part_s[SLC_DISTANCE_CHOICES],
                                     .blocks_s = distance->part_s[SLC_DISTANCE_BLOCKS],
                                     .order_s = distance->part_s[SLC_DISTANCE_ORDER],
                                     .latency_s = distance->part_s[SLC_DISTANCE_LATENCY],
                                     .packing_s = distance->part_s[SLC_DISTANCE_PACKING],
                                     .outside_s = now->forecast.outside_s,
                                     .distance_outside_s = distance->part_s[SLC_DISTANCE_OUTSIDE],
                                     .searched_s = now->forecast.searched_s,
                                     .out_of_time = now->forecast.ended >= SLC_PLANNING_EFFORT,
                                     .effort_s = now->forecast.effort_s,
                                     .ended = slc_planning_end_name(now->forecast.ended)};
    sluice_status status = slc_sized_check("sluice_plan_report", NULL, report, sizeof *report);
    if (!status) slc_sized_write(&made, sizeof made, report);
    return status;
}

uint32_t sluice_runtime_trial_count(const sluice_runtime *rt)
{
    return rt && !rt->trials.on ? rt->trials.count : 0;
}

sluice_status sluice_runtime_trial(const sluice_runtime *rt, uint32_t index, sluice_plan_trial *trial)
{
    if (!rt || !trial) return slc_error(SLUICE_ERR_ARGUMENT, "runtime_trial: no runtime or no result given");
    if (index >= sluice_runtime_trial_count(rt))
        return slc_error(SLUICE_ERR_ARGUMENT, "runtime_trial: plan %u of %u", index, sluice_runtime_trial_count(rt));
    const slc_trial *tried = &rt->trials.of[index];
    const sluice_plan_trial made = {.name = tried->name,
                                    .step_s = tried->answer.forecast.step_s,
                                    .measured_step_s = tried->measured_s,
                                    .stays = index == rt->trials.kept};
    sluice_status status = slc_sized_check("sluice_plan_trial", NULL, trial, sizeof *trial);
    if (!status) slc_sized_write(&made, sizeof made, trial);
    return status;
}

uint64_t sluice_runtime_dp_bytes(const sluice_runtime *rt)
{
    return rt ? rt->planning.dp_bytes : 0;
}

uint64_t sluice_runtime_step(const sluice_runtime *rt)
{
    return rt ? rt->step : 0;
}
