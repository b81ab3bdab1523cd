/* Gradients around a backward slot. Private to lib/engine. */
#pragma once

#include "lib/plan/plan.h"

#include <sluice/runtime.h>

sluice_status slc_gradients_begin(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot);
sluice_status slc_gradients_end(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot);
