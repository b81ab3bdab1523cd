/* The smallest budget that works. It keeps what the request forces and leaves all else free.
 * planner_test.c covers this file. */
#include "sched/planner.h"
#include "sched/joint/joint.h"
#include "sched/joint/least_memory.h"
#include "sched/planner/parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

sluice_status slc_smallest_budget(const slc_job *job, const slc_plan_request *request, const slc_times *times,
                                  double effort_s, slc_work *work, slc_smallest *best)
{
    bool cut = false;
    slc_strategy *free_units = calloc(2 * (size_t)job->unit_count + 1, sizeof *free_units);
    bool *recompute = calloc((size_t)job->layer_count + 1, sizeof *recompute);
    uint64_t arena_bytes = 0;
    sluice_status status = SLUICE_OK;
    if (!free_units || !recompute) status = slc_error(SLUICE_ERR_MEMORY, "plan: no memory for strategies");
    for (uint32_t u = 0; !status && u < job->unit_count; u++) free_units[u] = SLC_STRATEGIES;
    if (!status) slc_strategies_force(job, request->forced, free_units);
    slc_joint_request ask = {.job = job,
                             .times = times,
                             .strategies = free_units,
                             .recompute = request->recompute,
                             .limit = UINT64_MAX,
                             .effort_s = request->effort_s,
                             .work = work,
                             .cancel = request->cancel};
    if (!(effort_s > 0)) effort_s = slc_least_memory_share_s(slc_joint_effort_s(&ask));
    if (!status)
        status = slc_least_memory_within(&ask, work->spent_s + effort_s, free_units + job->unit_count, recompute,
                                         &arena_bytes, &cut);
    *best = (slc_smallest){arena_bytes + job->reserved_bytes, "auto", slc_schedule_default, cut};
    free(recompute);
    free(free_units);
    return status;
}

sluice_status slc_plan_smallest_budget(const slc_job *job, const slc_plan_request *request, uint64_t *budget_bytes)
{
    slc_times estimated = {0};
    slc_smallest best = {0};
    slc_work work = {0};
    sluice_status status = request->times ? SLUICE_OK : slc_times_estimate(job, &estimated);
    if (!status)
        status = slc_smallest_budget(job, request, request->times ? request->times : &estimated, 0, &work, &best);
    slc_times_fini(&estimated);
    *budget_bytes = best.budget_bytes;
    return status;
}
