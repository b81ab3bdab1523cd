/* The planner: reads the request, resolves the budget, fills what the request leaves open, makes the plan and holds it
 * against the budget. */
#include "sched/planner.h"

#include "lib/base/status.h"
#include "sched/planner_parts.h"

#include <math.h>
#include <stdlib.h>

static sluice_status find_scheduler(const char *name, const slc_scheduler **out)
{
    *out = name ? slc_scheduler_find(name) : NULL;
    if (*out) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "schedule \"%s\" does not exist; choose one of %s", name ? name : "",
                     slc_scheduler_names());
}

static sluice_status measure_dp(const slc_job *job, slc_strategy *scratch, uint64_t *bytes)
{
    for (uint32_t u = 0; u < job->unit_count; u++) scratch[u] = SLC_DP;
    sluice_status status = slc_plan_measure(&(slc_scheduling){.job = job, .strategies = scratch, .limit = UINT64_MAX},
                                            &slc_scheduler_serial, UINT64_MAX, bytes);
    *bytes += job->reserved_bytes;
    return status;
}

static sluice_status resolve_budget(const slc_plan_request *request, slc_plan_answer *answer)
{
    double fraction = request->budget_of_dp;
    answer->budget_bytes = request->budget_bytes;
    if (!isfinite(fraction) || fraction < 0)
        return slc_error(SLUICE_ERR_ARGUMENT, "budget: %g of what dp needs is no size; give a fraction above 0",
                         fraction);
    if (fraction == 0) return SLUICE_OK;
    double bytes = fraction * (double)answer->dp_bytes;
    /* 1: zero would mean that there is no budget. */
    answer->budget_bytes = bytes < 1 ? 1 : bytes < 0x1p62 ? (uint64_t)bytes : UINT64_C(1) << 62;
    return SLUICE_OK;
}

static uint64_t arena_limit(const slc_job *job, uint64_t budget)
{
    return budget > job->reserved_bytes ? budget - job->reserved_bytes : 0;
}

static sluice_status fill_free_units(const slc_job *job, const slc_scheduler *scheduler, uint64_t budget,
                                     slc_strategy *strategies, slc_strategy *scratch)
{
    if (!slc_strategies_free(job, strategies)) return SLUICE_OK;
    uint64_t limit = budget ? arena_limit(job, budget) : UINT64_MAX, bytes;
    for (uint32_t u = 0; u < job->unit_count; u++) scratch[u] = strategies[u];
    return slc_mixed_choose(job, scheduler, scratch, limit, strategies, &bytes);
}

static sluice_status make_within(const slc_job *job, const slc_plan_request *request, const slc_scheduler *scheduler,
                                 const slc_strategy *strategies, slc_plan_answer *answer)
{
    slc_plan *plan;
    sluice_status status =
        slc_plan_make(&(slc_scheduling){.job = job, .strategies = strategies, .limit = UINT64_MAX}, scheduler, &plan);
    if (status) return status;
    if (answer->budget_bytes && plan->arena_bytes > arena_limit(job, answer->budget_bytes)) {
        status = slc_budget_error(job, request, answer->budget_bytes, plan);
        slc_plan_destroy(plan);
        return status;
    }
    answer->plan = plan;
    return SLUICE_OK;
}

sluice_status slc_plan_for_budget(const slc_job *job, const slc_plan_request *request, slc_plan_answer *answer)
{
    *answer = (slc_plan_answer){0};
    const slc_scheduler *scheduler;
    sluice_status status = find_scheduler(request->schedule, &scheduler);
    if (status) return status;
    slc_strategy *strategies = calloc(2 * (size_t)job->unit_count + 1, sizeof *strategies);
    if (!strategies) return slc_error(SLUICE_ERR_MEMORY, "plan: no memory for %u strategies", job->unit_count);
    slc_strategy *scratch = strategies + job->unit_count;

    status = slc_strategies_parse(job, request->strategy, strategies);
    if (status) goto out;
    slc_strategies_force(job, request->forced, strategies);
    status = measure_dp(job, scratch, &answer->dp_bytes);
    if (!status) status = resolve_budget(request, answer);
    if (!status) status = fill_free_units(job, scheduler, answer->budget_bytes, strategies, scratch);
    if (!status) status = make_within(job, request, scheduler, strategies, answer);

out:
    free(strategies);
    return status;
}
