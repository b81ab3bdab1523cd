/* The steps of slc_plan_for_budget, one file each. Private to sched. A unit's strategy may be SLC_STRATEGIES here:
 * free, chosen later by what the budget holds. ROWS units are fsdp, whether they are given as free or not. */
#ifndef SLC_PLANNER_PARTS_H
#define SLC_PLANNER_PARTS_H

#include "lib/plan/request.h"
#include "sched/scheduler.h"

/* What a request means for each unit, before a budget is looked at. */
sluice_status slc_strategies_parse(const slc_job *job, const char *spec, slc_strategy *out);
/* The same from a file. `text` is its content. */
sluice_status slc_strategies_from_json(const slc_job *job, const char *path, const char *text, slc_strategy *out);
void slc_strategies_force(const slc_job *job, const slc_strategy *forced, slc_strategy *strategies); /* NULL: none */
bool slc_strategies_free(const slc_job *job, const slc_strategy *strategies);                        /* any free? */

/* Fills the free units (of in->strategies): sdp for the largest number that keeps the arena within `limit`, fsdp for
 * the others. Units whose gathers cost most per byte that sdp keeps come first. When no number fits: the number that
 * needs least. *arena_bytes is what the result needs. */
sluice_status slc_mixed_choose(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t limit,
                               slc_strategy *out, uint64_t *arena_bytes);
/* The free units (of `strategies`) in the order in which they become sdp. `out` holds [units]; *count of them. */
sluice_status slc_mixed_rank(const slc_job *job, const slc_strategy *strategies, uint32_t *out, uint32_t *count);
/* The number that needs least, if that is at most `limit`; else *arena_bytes is UINT64_MAX. */
sluice_status slc_mixed_smallest(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t limit,
                                 slc_strategy *out, uint64_t *arena_bytes);

/* Sets the error line of a plan that is larger than the budget; returns BUDGET (or what went wrong meanwhile). */
sluice_status slc_budget_error(const slc_job *job, const slc_plan_request *request, const slc_times *times,
                               uint64_t budget_bytes, const slc_plan *plan);

#endif
