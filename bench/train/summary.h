/* Sums up the steps of a run while they come, in memory that does not grow with their number. */
#pragma once

#include "bench/train/result.h"

/* Adds a step to what the summary is made of. A result begins with slc_training_result_init. Errors: MEMORY. */
sluice_status slc_training_note(slc_training_result *result, const slc_training_step *step);

/* Fills medians, rates and phases from the steps so far. Errors: MEMORY. */
sluice_status slc_training_summarise(slc_training_result *result);

void slc_training_result_init(slc_training_result *result);
/* Frees what a result owns; it is empty afterwards. */
void slc_training_result_free(slc_training_result *result);
