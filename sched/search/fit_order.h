/* Makes an order that needs a little too much memory need less. */
#pragma once

#include "sched/scheduler.h"
#include "sched/simulate/forecast.h"

/* Changes `order` until its packed arena is at most in->limit: gathers that are alive at a moment where memory is short
 * move after it, reductions and updates that would free memory move before it. *plan is a plan that fits (not validated
 * yet), or NULL; the caller destroys it. *forecast becomes the plan's. *arena_bytes is that of the
 * last order that was kept, which `order` becomes; UINT64_MAX: no plan could be made of it. Ends at `until_s` nominal
 * seconds of in->work (0: none). Errors: MEMORY. */
sluice_status slc_fit_order(const slc_scheduling *in, const slc_scheduler *scheduler, double until_s, slc_order *order,
                            slc_plan **plan, uint64_t *arena_bytes, slc_forecast *forecast);
