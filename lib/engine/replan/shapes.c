/* The job of a shape differs from that of another in the bytes of activations and workspaces alone, so moving over is a
 * re-plan, as between the phases of a compressed optimizer. A plan that has run for a shape stays, since evaluations
 * come back to shape 0, and steps to theirs. lib/model/batch/step_shapes_test.c covers this file. */

#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/model/regions.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/drain.h"

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

static uint64_t sum_of_activations(const slc_job *job)
{
    uint64_t sum = 0;
    for (uint32_t a = 0; a < job->activation_count; a++) sum += job->activations[a].bytes;
    return sum;
}

/* Slots of another shape take a share that is about that of its activations, until they are measured. */
static void scale_slots(const slc_job *job, double share, slc_times *times)
{
    for (uint32_t s = 0; s < slc_job_slots(job); s++) times->slot_s[s] *= share;
    for (uint32_t l = 0; l < job->layer_count; l++) times->recompute_s[l] *= share;
}

/* Makes the first plan of a shape, from the times of the shape before, if they were measured. */
static sluice_status make_plan(sluice_runtime *rt, double share, slc_shape_plan *out)
{
    slc_plan_request request = slc_engine_standing_request(rt);
    const bool wants = slc_engine_wants_times(rt, request.schedule);
    sluice_status status = SLUICE_OK;
    out->measured = wants && rt->current.measured;
    out->unproven_times = wants;
    if (out->measured) status = slc_times_copy(&rt->job, &rt->current.times, &out->times);
    if (status) return status;
    if (out->measured) scale_slots(&rt->job, share, &out->times);
    request.times = out->measured ? &out->times : NULL;
    return wants && !out->measured ? slc_engine_share_simple_plan(rt, &request, &out->answer)
                                   : slc_engine_share_plan(rt, &request, &out->answer);
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
    rt->planning.unproven = false;
    rt->planning.apart = 0;
    *next = (slc_shape_plan){0};
    return status;
}

static sluice_status move_over(sluice_runtime *rt, uint32_t shape)
{
    const uint32_t before = rt->shapes.now;
    const double bytes = (double)sum_of_activations(&rt->job);
    slc_shape_plan *next = &rt->shapes.kept[shape];
    sluice_status status = set_shape(rt, shape);
    if (!status && !next->answer.plan)
        status = make_plan(rt, bytes > 0 ? (double)sum_of_activations(&rt->job) / bytes : 1, next);
    if (!status) status = swap_plans(rt, next, &rt->shapes.kept[before]);
    if (!status && rt->rank == 0)
        slc_log(SLC_LOG_INFO, "step %llu: shape %u runs under plan %u, of %llu bytes", (unsigned long long)rt->step + 1,
                shape, rt->current.number, (unsigned long long)rt->current.plan->arena_bytes);
    return slc_error_context(status, "the plan of shape %u", shape);
}

sluice_status slc_shape_turn_to(sluice_runtime *rt, uint32_t shape)
{
    if (shape == rt->shapes.now || rt->compression.on || slc_is_stage(&rt->stage)) return SLUICE_OK;
    slc_trials_end(rt);
    slc_writer_wait(&rt->writer, SLC_NONE, rt->comm); /* a new plan moves everything */
    sluice_status status = slc_runtime_drain(rt);
    if (!status) status = move_over(rt, shape);
    return slc_runtime_fail(rt, status);
}

uint32_t sluice_runtime_shape(const sluice_runtime *rt)
{
    return rt ? rt->shapes.now : 0;
}
