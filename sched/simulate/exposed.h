/* Exposed communication: how long the compute lane stood before a slot, or an update that it runs, and for what. */
#ifndef SLC_EXPOSED_H
#define SLC_EXPOSED_H

#include "sched/simulate/simulate.h"

typedef struct {
    uint32_t slot;  /* item of the compute lane that had to wait */
    uint32_t cause; /* the operation whose end let it start; SLC_NONE: none of those that the plan names */
    bool previous;  /* the operation is of the pass before */
    uint32_t busy;  /* the operation that ran for most of the wait: the cause, or what it queued behind; SLC_NONE */
    double from_s, to_s;
} slc_exposure;

/* The waits of one pass in the order of its compute lane, from what slc_simulate_items told; the first one may begin
 * before time 0. `out` has room for every item of that lane. Results: how many; waits that rounding makes are none. */
uint32_t slc_exposures(const slc_plan *plan, const slc_item_times *items, double step_s, slc_exposure *out);

#endif
