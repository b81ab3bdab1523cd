/* Exposed communication: how long the compute lane waited before a slot, or before an update that it runs, and for
 * what. */
#pragma once

#include "sched/simulate/simulate.h"

typedef struct {
    uint32_t slot;  /* the item of the compute lane that had to wait */
    uint32_t cause; /* the operation whose end let it start; SLC_NONE: none of those that the plan makes it wait for */
    bool previous;  /* that operation is of the previous pass */
    uint32_t busy;  /* the operation that ran for most of the wait: the cause, or one before it in the queue; SLC_NONE:
                       there is none */
    double from_s, to_s;
} slc_exposure;

/* Finds the waits of one pass in the order of its compute lane, from the times of slc_simulate_items; the first wait
 * may begin before time 0, after what the program does outside of slots. `out` has room for every item of that lane.
 * Returns how many there are; waits as short as rounding errors do not count. */
uint32_t slc_exposures(const slc_plan *plan, const slc_item_times *items, const slc_forecast *forecast,
                       slc_exposure *out);
