/* Finds the smallest arena of any plan of a job: `auto` falls back on it under the tightest budget, and the error for a
 * budget names it. */
#pragma once

#include "sched/joint/joint_request.h"

enum {
    SLC_LEAST_MEMORY_TRIES = 50
}; /* tries of packing (slc_trying) with which a plan fits the arena that was found */

/* Returns the nominal seconds that the search for the least memory may take within a planning that may take `effort_s`.
 * Every place that needs the search gives it the same share, so the budget that a refusal names works within the same
 * effort. */
static inline double slc_least_memory_share_s(double effort_s)
{
    const double half_s = effort_s / 2, least_s = 0.05, most_s = 1;
    return half_s < least_s ? least_s : half_s < most_s ? half_s : most_s;
}

/* Minimises over the strategies and recomputation that the request leaves free, under serial or one_ahead; the
 * request's limit is ignored. Fills strategies [units], recompute [L] and the arena's size, packed. Errors: MEMORY. */
sluice_status slc_least_memory(const slc_joint_request *request, slc_strategy *strategies, bool *recompute,
                               uint64_t *arena_bytes);

/* Does what slc_least_memory does until request->work has spent `until_s`: all fsdp is measured in any case, everything
 * else while there is time. *cut: there was more to try. */
sluice_status slc_least_memory_within(const slc_joint_request *request, double until_s, slc_strategy *strategies,
                                      bool *recompute, uint64_t *arena_bytes, bool *cut);
