/* The steps of slc_plan_for_budget, one file each. Private to sched. A unit's strategy may be SLC_STRATEGIES here: it
 * is free and chosen later by what the budget holds. ROWS units are always fsdp, even if they are given as free. */
#pragma once

#include "lib/plan/request.h"
#include "sched/scheduler.h"

/* Turns a user's strategy into one for each unit, before a budget is looked at. */
sluice_status slc_strategies_parse(const slc_job *job, const char *spec, slc_strategy *out);
/* Reads strategies from a file's content `text`; errors name `path`. */
sluice_status slc_strategies_from_json(const slc_job *job, const char *path, const char *text, slc_strategy *out);
void slc_strategies_force(const slc_job *job, const slc_strategy *forced,
                          slc_strategy *strategies); /* NULL: nothing is forced */

/* The smallest budget that some plan of the job keeps to, the binary's own bytes included, and the flags for it. */
typedef struct {
    uint64_t budget_bytes;
    const char *strategy, *schedule;
    bool cut; /* the effort ended the search, so less may do */
} slc_smallest;
/* Finds the smallest budget. The search counts its work in `work`, and ends when that has spent `effort_s` more nominal
 * seconds; 0: the share of the request's effort that the search has in a plan. */
sluice_status slc_smallest_budget(const slc_job *job, const slc_plan_request *request, const slc_times *times,
                                  double effort_s, slc_work *work, slc_smallest *best);

/* Sets the error line of a plan that is larger than the budget and returns BUDGET (or the error of what failed
 * meanwhile). `known` NULL: the smallest budget is found first, with its share of the effort. */
sluice_status slc_budget_error(const slc_job *job, const slc_plan_request *request, const slc_times *times,
                               uint64_t budget_bytes, const slc_plan *plan, slc_work *work, const slc_smallest *known);
