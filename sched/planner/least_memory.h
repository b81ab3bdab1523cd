/* The smallest arena that any plan of a job needs: what `auto` falls back on under the tightest budget, and what a
 * budget's error names. */
#ifndef SLC_LEAST_MEMORY_H
#define SLC_LEAST_MEMORY_H

#include "sched/planner/portfolio.h"

enum { SLC_LEAST_MEMORY_TRIES = 50 }; /* of packing (slc_trying): with as many a plan fits the arena that is found */

/* Over strategies and recomputation that the request leaves free, under serial or one_ahead; the request's limit is not
 * looked at. Fills strategies [units], recompute [L] and the arena's size, packed. Errors: MEMORY. */
sluice_status slc_least_memory(const slc_joint_request *request, slc_strategy *strategies, bool *recompute,
                               uint64_t *arena_bytes);

#endif
