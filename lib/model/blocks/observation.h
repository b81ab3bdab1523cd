/* Figures of how much each block changes its input, for the rows: training's forward leaves them in the host's memory
 * while a model is observed. */
#pragma once

#include "lib/model/state.h"

/* Counts the memory in the runtime's budget, before commit, if the budget is of the host's memory. */
sluice_status slc_observation_reserve(sluice_model *m);
/* Makes the memory, when the model's device is open; slc_observation_destroy frees it, after a failure too. Errors:
 * MEMORY, those of slc_pinned_create. */
sluice_status slc_observation_create(sluice_model *m);
void slc_observation_destroy(sluice_model *m);

/* Bytes of the figures of all rows of a micro-batch: of the current one, or while the model is made of the largest. */
static inline uint64_t slc_observation_bytes(const sluice_model *m)
{
    return m->rows * 2 * sizeof(float);
}
/* Returns the place of the rows of a block on the host; from now on they count as those of the current micro-batch. */
float *slc_observation_take(sluice_model *m, uint32_t block);
