/* Gradients around a backward slot. Private to lib/engine. */
#ifndef SLC_ENGINE_GRADIENTS_H
#define SLC_ENGINE_GRADIENTS_H

#include "lib/plan/plan.h"

#include <sluice/runtime.h>

sluice_status slc_gradients_begin(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot);
sluice_status slc_gradients_end(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot);

#endif
