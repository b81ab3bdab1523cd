/* Local search over the order of a plan, judged by the simulator. */
#ifndef SLC_SEARCH_H
#define SLC_SEARCH_H

#include "sched/scheduler.h"
#include "sched/simulate/simulate.h"

typedef struct {
    uint64_t limit;       /* bytes of the arena */
    uint64_t deadline_ns; /* slc_clock_ns; 0: none */
    uint32_t most_tries;  /* orders looked at, at most */
    uint32_t patience;    /* tries without gain until it starts again from the best */
    uint32_t rounds;      /* so often without gain until it ends */
    bool lanes;           /* updates may change their lane */
    uint64_t seed;
} slc_search_options;

/* Improves *plan (owned; replaced by a faster one) and its *forecast. Moves runs among their neighbours and across the
 * step's border, joins and splits them, and puts updates on the other lane; every plan taken is legal and within
 * in->limit. *tries, if not NULL, counts them. Deterministic but for the deadline. Errors: MEMORY. */
sluice_status slc_search_order(const slc_scheduling *in, const slc_scheduler *scheduler,
                               const slc_search_options *options, slc_plan **plan, slc_forecast *forecast,
                               uint32_t *tries);

#endif
