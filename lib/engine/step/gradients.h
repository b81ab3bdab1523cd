/* Gradients around a backward slot. Private to lib/engine. */
#pragma once

#include "lib/plan/plan.h"

#include <sluice/runtime.h>

/* micro_batch: the slot's, of those that the step runs. */
sluice_status slc_gradients_begin(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot,
                                  uint32_t micro_batch);
sluice_status slc_gradients_end(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot,
                                uint32_t micro_batch);
