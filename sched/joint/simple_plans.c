/* Each plan is made by one scheduler and timed by the simulator; nothing is searched.
 * sched/planner/distance_test.c covers this file. */
#include "sched/joint/simple_plans.h"

#include "lib/base/status.h"
#include "sched/joint/least_memory.h"
#include "sched/simulate/simulate.h"
#include "sched/layout/make_plan.h"

#include <stdlib.h>

sluice_status slc_simple_plan_make(const slc_profile *profile, const slc_strategy *strategies, const bool *recompute,
                                   const slc_scheduler *scheduler, uint64_t limit, slc_simple_plan *out)
{
    const slc_job *job = &profile->job;
    const slc_scheduling in = {
        .job = job, .strategies = strategies, .recompute = recompute, .times = &profile->times, .limit = limit};
    slc_plan *plan = NULL;
    slc_forecast forecast = {0};
    *out = (slc_simple_plan){0};
    sluice_status status = slc_plan_make(&in, scheduler, &plan);
    if (!status) status = slc_simulate(job, &profile->times, plan, NULL, &forecast);
    if (!status) {
        out->arena_bytes = plan->arena_bytes;
        if (plan->arena_bytes <= limit) {
            out->step_s = forecast.step_s;
            out->exposed_s = forecast.exposed_s;
        }
    }
    slc_plan_destroy(plan);
    return status;
}

static slc_strategy *uniform(const slc_job *job, slc_strategy strategy)
{
    slc_strategy *strategies = malloc(((size_t)job->unit_count + 1) * sizeof *strategies);
    for (uint32_t u = 0; strategies && u < job->unit_count; u++)
        strategies[u] = slc_unit_strategy(job, &job->units[u], strategy);
    if (!strategies) slc_error(SLUICE_ERR_MEMORY, "%u units", job->unit_count);
    return strategies;
}

sluice_status slc_simple_plan_uniform(const slc_profile *profile, slc_strategy strategy, const slc_scheduler *scheduler,
                                      uint64_t limit, slc_simple_plan *out)
{
    slc_strategy *strategies = uniform(&profile->job, strategy);
    *out = (slc_simple_plan){0};
    sluice_status status =
        strategies ? slc_simple_plan_make(profile, strategies, NULL, scheduler, limit, out) : SLUICE_ERR_MEMORY;
    free(strategies);
    return status;
}

static void take_faster(const slc_simple_plan *plan, slc_simple_plan *best)
{
    if (plan->step_s > 0 && (!best->step_s || plan->step_s < best->step_s)) *best = *plan;
}

sluice_status slc_simple_plan_fastest_order(const slc_profile *profile, const slc_strategy *strategies,
                                            const bool *recompute, uint64_t limit, slc_simple_plan *out)
{
    const slc_scheduler *scheduler;
    sluice_status status = SLUICE_OK;
    *out = (slc_simple_plan){0};
    for (size_t s = 0; !status && (scheduler = slc_scheduler_at(s)); s++) {
        slc_simple_plan one = {0};
        if (scheduler->baseline) status = slc_simple_plan_make(profile, strategies, recompute, scheduler, limit, &one);
        take_faster(&one, out);
    }
    return status;
}

sluice_status slc_simple_plan_fastest_of(const slc_profile *profile, slc_strategy strategy, uint64_t limit,
                                         slc_simple_plan *out)
{
    slc_strategy *strategies = uniform(&profile->job, strategy);
    *out = (slc_simple_plan){0};
    sluice_status status =
        strategies ? slc_simple_plan_fastest_order(profile, strategies, NULL, limit, out) : SLUICE_ERR_MEMORY;
    free(strategies);
    return status;
}

sluice_status slc_simple_plan_fastest_uniform(const slc_profile *profile, uint64_t limit, slc_simple_plan *out)
{
    sluice_status status = SLUICE_OK;
    *out = (slc_simple_plan){0};
    for (int k = 0; !status && k < SLC_EXACT_STRATEGIES; k++) {
        slc_simple_plan one;
        status = slc_simple_plan_fastest_of(profile, (slc_strategy)k, limit, &one);
        take_faster(&one, out);
    }
    return status;
}

void slc_free_choices_fini(slc_free_choices *c)
{
    free(c->strategies);
    free(c->recompute);
    free(c->recomputed);
}

sluice_status slc_free_choices_init(slc_free_choices *c, const slc_job *job, bool recompute)
{
    c->strategies = malloc(2 * ((size_t)job->unit_count + 1) * sizeof *c->strategies);
    c->recompute = calloc((size_t)job->layer_count + 1, 1);
    c->recomputed = calloc((size_t)job->layer_count + 1, sizeof *c->recomputed);
    if (!c->strategies || !c->recompute || !c->recomputed) {
        slc_free_choices_fini(c);
        return slc_error(SLUICE_ERR_MEMORY, "%u units", job->unit_count);
    }
    for (uint32_t u = 0; u < job->unit_count; u++) c->strategies[u] = SLC_STRATEGIES;
    for (uint32_t l = 0; l < job->layer_count; l++)
        c->recompute[l] = recompute && job->can_recompute && job->can_recompute[l] ? 2 : 0;
    return SLUICE_OK;
}

sluice_status slc_simple_plan_range(const slc_profile *profile, bool recompute, uint64_t *least, uint64_t *all_sdp)
{
    slc_free_choices c;
    slc_simple_plan sdp;
    sluice_status status = slc_free_choices_init(&c, &profile->job, recompute);
    if (status) return status;
    slc_joint_request ask = {.job = &profile->job,
                             .times = &profile->times,
                             .strategies = c.strategies,
                             .recompute = c.recompute,
                             .limit = UINT64_MAX};
    status = slc_least_memory(&ask, c.strategies + profile->job.unit_count, c.recomputed, least);
    slc_free_choices_fini(&c);
    if (!status) status = slc_simple_plan_uniform(profile, SLC_SDP, &slc_scheduler_one_ahead, UINT64_MAX, &sdp);
    if (!status) *all_sdp = sdp.arena_bytes;
    return status;
}
