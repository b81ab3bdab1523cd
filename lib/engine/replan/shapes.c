/* The job of a shape differs from that of another in the bytes of activations and workspaces alone, so moving over is a
 * re-plan, as between the phases of a compressed optimizer. A plan that has run for a shape stays, since evaluations
 * come back to shape 0, and steps to theirs. lib/model/batch/step_shapes_test.c covers this file. */

#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/model/regions.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/drain.h"
#include "lib/plan/measured/fit_extents.h"

#include <stdio.h>
#include <string.h>

sluice_status slc_shape_check(const sluice_runtime *rt, uint64_t shape)
{
    if (shape <= rt->model.last_shape) return SLUICE_OK;
    if (!rt->model.last_shape)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "step_begin: shape %llu, but nothing has another shape than 0; give 0, or call "
                         "sluice_activation_shape or sluice_workspace_shape before commit",
                         (unsigned long long)shape);
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "step_begin: shape %llu, but the highest that an activation or a workspace has is %u; give 0 to %u",
        (unsigned long long)shape, rt->model.last_shape, rt->model.last_shape);
}

void slc_shapes_forget(sluice_runtime *rt)
{
    for (uint32_t s = 0; s <= SLUICE_SHAPES_MOST; s++) {
        slc_shape_plan *kept = &rt->shapes.kept[s];
        slc_plan_destroy(kept->answer.plan);
        slc_times_fini(&kept->times);
        *kept = (slc_shape_plan){0};
    }
}

void slc_shapes_fini(sluice_runtime *rt)
{
    slc_shapes_forget(rt);
    for (uint32_t s = 0; s <= SLUICE_SHAPES_MOST; s++) slc_times_fini(&rt->shapes.measured[s].times);
}

/* Makes the job that of a shape. Collective. */
static sluice_status set_shape(sluice_runtime *rt, uint32_t shape)
{
    rt->shapes.now = shape;
    for (uint32_t a = 0; a < rt->job.activation_count; a++) {
        const sluice_activation *activation = rt->model.activations[a];
        rt->job.activations[a].bytes = slc_shape_bytes(rt, activation->bytes, activation->shape_bytes);
    }
    return slc_engine_shape_regions(rt);
}

/* Bytes of activations say how much there is to compute, as long as attention is a small part of it. */
double slc_shape_extent(const sluice_runtime *rt, uint32_t shape)
{
    double own = 0, whole = 0;
    for (uint32_t a = 0; a < rt->job.activation_count; a++) {
        const sluice_activation *activation = rt->model.activations[a];
        whole += (double)activation->bytes;
        own += (double)(activation->shape_bytes[shape] ? activation->shape_bytes[shape] : activation->bytes);
    }
    return whole > 0 ? own / whole : 1;
}

/* ---- Times ---- */

sluice_status slc_shape_note_times(sluice_runtime *rt, const slc_times *times)
{
    slc_shape_times *own = &rt->shapes.measured[rt->shapes.now];
    const double extent = slc_measured_extent(rt->measure);
    if (!rt->model.last_shape || !(extent > 0)) return SLUICE_OK;
    slc_times_fini(&own->times);
    *own = (slc_shape_times){.extent = 0};
    sluice_status status = slc_times_copy(&rt->job, times, &own->times);
    if (!status) own->extent = extent;
    return status;
}

static uint32_t list_measured(const sluice_runtime *rt, slc_extent_sample samples[SLUICE_SHAPES_MOST + 1])
{
    uint32_t count = 0;
    for (uint32_t s = 0; s <= SLUICE_SHAPES_MOST; s++) {
        const slc_shape_times *of = &rt->shapes.measured[s];
        if (of->extent > 0) samples[count++] = (slc_extent_sample){of->extent, &of->times};
    }
    return count;
}

/* Makes times for a plan of a shape that has not run: slots from those that were measured at other lengths, all else as
 * it was measured last. */
static sluice_status fit_times(const sluice_runtime *rt, double extent, const slc_extent_sample *samples,
                               uint32_t lengths, slc_times *times)
{
    const slc_times *last = rt->current.measured ? &rt->current.times : samples->times;
    sluice_status status = slc_times_copy(&rt->job, last, times);
    if (!status) slc_fit_extents(&rt->job, samples, lengths, extent, 1, times);
    return status;
}

/* ---- Plans ---- */

static sluice_status make_plan(sluice_runtime *rt, double extent, slc_shape_plan *out, uint32_t *lengths)
{
    slc_extent_sample samples[SLUICE_SHAPES_MOST + 1];
    slc_plan_request request = slc_engine_standing_request(rt);
    const bool wants = slc_engine_wants_times(rt, request.schedule);
    sluice_status status = SLUICE_OK;
    *lengths = wants ? list_measured(rt, samples) : 0;
    if (*lengths) status = fit_times(rt, extent, samples, *lengths, &out->times);
    if (status) return status;
    out->measured = *lengths > 0;
    out->unproven_times = wants;
    if (out->measured) status = slc_measure_set_keeps(rt, &out->times);
    if (status) return status;
    request.times = out->measured ? &out->times : NULL;
    return wants && !out->measured ? slc_engine_share_simple_plan(rt, &request, &out->answer)
                                   : slc_engine_share_plan(rt, &request, &out->answer);
}

/* Returns true if there is no plan for steps of the shape, or one that has never been measured and was made from less
 * than is known now. */
static bool lacks_plan(const sluice_runtime *rt, uint32_t shape, double extent)
{
    slc_extent_sample samples[SLUICE_SHAPES_MOST + 1];
    const slc_shape_plan *kept = &rt->shapes.kept[shape];
    if (!kept->answer.plan) return true;
    if (!(extent > 0) || !kept->unproven_times || rt->shapes.measured[shape].extent > 0) return false;
    return list_measured(rt, samples) > rt->shapes.fitted[shape];
}

/* Makes the plan of a shape that lacks one. One that is there stays if another does not fit. */
static sluice_status renew_plan(sluice_runtime *rt, uint32_t shape, double extent, uint32_t *lengths)
{
    slc_shape_plan *kept = &rt->shapes.kept[shape], made = {.number = 0};
    if (!(extent > 0)) extent = slc_shape_extent(rt, shape);
    sluice_status status = make_plan(rt, extent, &made, lengths);
    rt->shapes.fitted[shape] = *lengths;
    if (status) slc_times_fini(&made.times);
    if (status == SLUICE_ERR_BUDGET && kept->answer.plan) return SLUICE_OK;
    if (status) return status;
    slc_plan_destroy(kept->answer.plan);
    slc_times_fini(&kept->times);
    *kept = made;
    return SLUICE_OK;
}

/* Takes what is kept of the plan that runs, but for the plan itself. */
static slc_shape_plan take_current(sluice_runtime *rt)
{
    slc_current_plan *now = &rt->current;
    slc_shape_plan kept = {.answer = {.budget_bytes = now->budget_bytes, .forecast = now->forecast},
                           .times = now->times,
                           .measured = now->measured,
                           .unproven_times = rt->planning.replan_due,
                           .number = now->number};
    memcpy(kept.answer.member, now->member, sizeof now->member);
    memcpy(kept.answer.note, now->note, sizeof now->note);
    now->times = (slc_times){0};
    return kept;
}

static sluice_status swap_plans(sluice_runtime *rt, slc_shape_plan *next, slc_shape_plan *left)
{
    const uint32_t made = rt->current.made;
    slc_plan *plan = NULL;
    *left = take_current(rt);
    if (next->number) rt->current.made = next->number - 1; /* it has its number already */
    sluice_status status = slc_engine_swap_plan(rt, &next->answer, next->measured ? &next->times : NULL, &plan);
    if (next->number) rt->current.made = made;
    left->answer.plan = plan;
    rt->planning.replan_due = next->unproven_times;
    rt->planning.held |= rt->planning.unproven; /* the plan that followed a drift is left before it was looked at */
    rt->planning.unproven = false;
    rt->planning.apart = 0;
    *next = (slc_shape_plan){0};
    return status;
}

static sluice_status move_over(sluice_runtime *rt, uint32_t shape, double extent)
{
    const uint32_t before = rt->shapes.now;
    slc_shape_plan *next = &rt->shapes.kept[shape];
    uint32_t lengths = 0;
    char fitted[64] = "";
    sluice_status status = set_shape(rt, shape);
    if (!status && lacks_plan(rt, shape, extent)) status = renew_plan(rt, shape, extent, &lengths);
    if (!status) status = swap_plans(rt, next, &rt->shapes.kept[before]);
    if (lengths)
        snprintf(fitted, sizeof fitted, "; slot times follow from %u measured length%s", lengths,
                 lengths > 1 ? "s" : "");
    if (!status && rt->rank == 0)
        slc_log(SLC_LOG_INFO, "step %llu: shape %u runs under plan %u, of %llu bytes%s",
                (unsigned long long)rt->step + 1, shape, rt->current.number,
                (unsigned long long)rt->current.plan->arena_bytes, fitted);
    return slc_error_context(status, "the plan of shape %u", shape);
}

sluice_status slc_shape_turn_to(sluice_runtime *rt, uint32_t shape, double extent)
{
    if (shape == rt->shapes.now || rt->compression.on || slc_is_stage(&rt->stage)) return SLUICE_OK;
    slc_trials_end(rt);
    slc_writer_wait(&rt->writer, SLC_NONE, rt->comm); /* a new plan moves everything */
    sluice_status status = slc_runtime_drain(rt);
    if (!status) status = move_over(rt, shape, extent);
    return slc_runtime_fail(rt, status);
}

uint32_t sluice_runtime_shape(const sluice_runtime *rt)
{
    return rt ? rt->shapes.now : 0;
}
