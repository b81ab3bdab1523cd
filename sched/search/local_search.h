/* Local search over the order of a plan and the places of its buffers; the simulator judges each change. */
#pragma once

#include "sched/scheduler.h"
#include "sched/simulate/simulate.h"

typedef struct {
    double until_s;      /* nominal seconds of in->work at which the search ends; 0: none */
    uint32_t most_tries; /* changes that are looked at, at most */
    uint32_t patience;   /* tries without gain until the search goes back to the best plan */
    uint32_t rounds;     /* how often it goes back without any gain before it ends */
    bool lanes;          /* updates may change their lane */
    uint64_t seed;
} slc_search_options;

/* Improves *plan (owned; replaced by a faster one) and its *forecast. The search moves runs among their neighbours and
 * across the step's border, joins and splits them, puts updates on the other lane, and moves buffers; every plan that
 * it takes is valid and within in->limit. *tries, if not NULL, becomes the number of changes looked at. Deterministic,
 * as long as in->work has no ceiling. Errors: MEMORY. */
sluice_status slc_search_order(const slc_scheduling *in, const slc_scheduler *scheduler,
                               const slc_search_options *options, slc_plan **plan, slc_forecast *forecast,
                               uint32_t *tries);
