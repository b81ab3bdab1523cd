/* Answers the slot model by looking at every answer: an oracle for small cases. */
#pragma once

#include "ilp/slot_model.h"

/* Finds the step of the best answer in request->whole_blocks (> 0) over all allowed strategies, recomputation and
 * placements of whole blocks, each judged by slc_slot_model_evaluate; infinity: none keeps to the limit. *tried is how
 * many answers there were; 0: more than `most`, and none was looked at. Errors: ARGUMENT (no whole blocks), MEMORY,
 * those of a request. */
sluice_status slc_slot_model_enumerate(const slc_slot_request *request, double most, double *best_s, uint64_t *tried);
