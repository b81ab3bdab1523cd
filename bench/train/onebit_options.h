/* What the training options say about compressed optimizers: consent to lossy communication, the freeze, the rest. */
#ifndef SLC_BENCH_TRAINING_ONEBIT_H
#define SLC_BENCH_TRAINING_ONEBIT_H

#include "bench/train/options.h"

/* onebit_adam, onebit_lamb or zero_one_adam. */
bool slc_training_is_compressed(const char *optimizer);

/* Under this strategy no unit can come to onebit. */
bool slc_training_is_exact(const char *strategy);

/* The optimizer's name, as given; else onebit_adam where --strategy onebit asks for it, or --lossy onebit allows it and
 * the strategy leaves a choice; else adamw. */
const char *slc_training_optimizer(const slc_training_options *options);

/* With the optimizer resolved. Errors: ARGUMENT for onebit without a compressed optimizer, for settings of compressed
 * optimizers with another one, for values that mean nothing. */
sluice_status slc_training_onebit_check(const slc_training_options *options);

/* Last step of the warm-up: as given, else a fifth of the steps, at least 5, and not before the learning rate's warm-up
 * is over; 0: --freeze-change decides. */
uint64_t slc_training_freeze_step(const slc_training_options *options);

/* Sets what the options say; the options have passed the check. */
void slc_training_onebit(const slc_training_options *options, sluice_onebit *out);

/* For a sweep over optimizers: takes out of the options what is said to another kind of optimizer than theirs. */
void slc_training_onebit_only(slc_training_options *options);

#endif
