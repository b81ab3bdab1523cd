/* Checks of the options of a model that is to be created. */
#pragma once

#include "lib/model/state.h"

/* Refuses options that contradict each other, the model or the runtime that it would belong to. Errors: ARGUMENT;
 * UNSUPPORTED: the options want a cache of keys and values on a GPU or in a world of several ranks. */
sluice_status slc_model_options_check(sluice_runtime *rt, const sluice_model_config *config,
                                      const sluice_model_options *options);
