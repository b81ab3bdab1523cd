/* What a rank does with gradients. Private to lib/engine. */
#ifndef SLC_ENGINE_UPDATE_H
#define SLC_ENGINE_UPDATE_H

#include "lib/engine/step_state.h"
#include "lib/plan/plan.h"

#include <sluice/runtime.h>

/* ---- update.c ---- */
/* Inspects the own part of a reduced gradient: norm bins, non-finite values, the optimizer's norms. */
sluice_status slc_inspect_reduced(sluice_runtime *rt, const slc_item *item, slc_step_state *step);
sluice_status slc_update_unit(sluice_runtime *rt, const slc_item *item, const slc_step_state *step);
/* The same on the caller's thread, shared out among the compute threads, and measured. Not for onebit units. */
sluice_status slc_update_on_compute(sluice_runtime *rt, const slc_item *item, const slc_step_state *step);

/* ---- gradients.c: around a backward slot ---- */
sluice_status slc_gradients_begin(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot);
sluice_status slc_gradients_end(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot);

#endif
