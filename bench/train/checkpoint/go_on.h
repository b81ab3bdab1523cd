/* --go-on DIR: the run saves to DIR, and goes on from the checkpoint that is there, if one is. */
#pragma once

#include "bench/train/options/options.h"

/* Local, before anything reads --save or --resume: --go-on sets them. Errors: ARGUMENT (they were given too), those of
 * sluice_checkpoint_latest. */
sluice_status slc_training_go_on(slc_training_options *options);

/* Collective: checks that every rank has found a checkpoint, or none. Errors: MISMATCH (says which rank has not). */
sluice_status slc_training_go_on_agree(const slc_training_options *options, sluice_world *world);
