/* Sums up the steps of a run. */
#pragma once

#include "bench/train/result.h"

/* Fills medians, rates and phases from the steps. Errors: MEMORY. */
sluice_status slc_training_summarise(slc_training_result *result);
