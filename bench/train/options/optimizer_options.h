/* The training options that are numbers of the optimizer: --beta1, --beta2, --epsilon, --weight-decay. Those that are
 * left open are NaN and mean the library's, which differ between optimizers. One thread. */
#ifndef SLC_BENCH_TRAINING_OPTIMIZER_OPTIONS_H
#define SLC_BENCH_TRAINING_OPTIMIZER_OPTIONS_H

#include "bench/train/options/training_options.h"

/* Sets the fields of the optimizer that the options name, so far as they are given. */
void slc_training_optimizer_config(const slc_training_options *options, sluice_config *config);

/* Replaces those that are left open by what the library takes for this optimizer. */
void slc_training_optimizer_fill(slc_training_options *options);

#endif
