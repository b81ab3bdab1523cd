/* Makes an order that needs a little too much memory need less. */
#ifndef SLC_FIT_ORDER_H
#define SLC_FIT_ORDER_H

#include "sched/scheduler.h"

/* Gathers that are alive at the fullest moment go behind it, reductions and updates that would free memory go before
 * it, until the packed arena is at most in->limit. *plan: one that fits (not validated yet), or NULL; *arena_bytes: the
 * smallest seen; `order` becomes its order. Ends at `deadline_ns` (0: none). Errors: MEMORY. */
sluice_status slc_fit_order(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t deadline_ns,
                            slc_order *order, slc_plan **plan, uint64_t *arena_bytes);

#endif
