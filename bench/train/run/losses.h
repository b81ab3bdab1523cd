/* Notes of the losses of a run while it goes on: their smoothed mean, one that jumps, and steps that were
 * skipped. */
#pragma once

#include "bench/train/run/place.h"
#include "bench/train/words/doubts.h"

typedef struct {
    double sum, weight; /* of the latest losses */
    slc_training_loss_watch jumps;
    uint64_t skipped_in_a_row; /* the latest steps */
} slc_run_losses;

/* Sets the step's smoothed loss. The latest losses have weights that fall by a twentieth from one to the one before; a
 * loss that is not finite has none. */
void slc_run_losses_smooth(slc_run_losses *losses, slc_training_step *step);

/* Rank 0 warns of a loss that jumps and of the first step that is skipped. Counts skipped steps in the result. Errors:
 * NON_FINITE (--nan-limit). */
sluice_status slc_run_losses_note(slc_run_losses *losses, const slc_training_options *options,
                                  const slc_run_place *place, const slc_training_step *step,
                                  slc_training_result *result);
