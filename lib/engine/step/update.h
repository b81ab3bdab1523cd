/* Reduced gradients, and the updates that are made of them. Private to lib/engine. */
#pragma once

#include "lib/engine/step_state.h"
#include "lib/plan/plan.h"

#include <sluice/runtime.h>

/* Inspects the own part of a reduced gradient: norm bins, non-finite values, the optimizer's norms. */
sluice_status slc_inspect_reduced(sluice_runtime *rt, const slc_item *item, slc_step_state *step);
sluice_status slc_update_unit(sluice_runtime *rt, const slc_item *item, const slc_step_state *step);
/* Updates on the caller's thread, shared out among the compute threads and measured, or in the compute stream of a
 * device that runs ahead. Not for onebit units. */
sluice_status slc_update_on_compute(sluice_runtime *rt, const slc_item *item, const slc_step_state *step);
