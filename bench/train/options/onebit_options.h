/* The training options of compressed optimizers: consent to lossy communication, the freeze, and other settings. One
 * thread. */
#pragma once

#include "bench/train/options/training_options.h"

#include <jansson.h>

bool slc_training_is_compressed(const char *optimizer);

/* Returns true if no unit can become onebit under this strategy. */
bool slc_training_is_exact(const char *strategy);

/* Returns the optimizer that is taken if the options name none: the first one of the table that is `compressed`, or
 * that is not. */
const char *slc_training_optimizer_usual(bool compressed);

/* Returns the optimizer's name, as given; else the usual compressed one if --strategy onebit asks for it, or --lossy
 * onebit allows it and the strategy leaves a choice; else the usual one. */
const char *slc_training_optimizer(const slc_training_options *options);

/* Checks options whose optimizer slc_training_optimizer has named. Errors: ARGUMENT for onebit without a compressed
 * optimizer, for settings of compressed optimizers with another one, for values that mean nothing. */
sluice_status slc_training_onebit_check(const slc_training_options *options);

/* Returns the last step of the warm-up: as given, else a fifth of the steps, at least 5, and not before the learning
 * rate's warm-up is over; 0: --freeze-change decides. */
uint64_t slc_training_freeze_step(const slc_training_options *options);

/* Sets the fields of *out that the options name; the options have passed the check. */
void slc_training_onebit(const slc_training_options *options, sluice_onebit *out);

/* Gives the settings of a compressed optimizer that slc_training_onebit sets; null for others. NULL: no memory. */
json_t *slc_training_onebit_json(const slc_training_options *options);

/* Removes the options that are for another kind of optimizer than the one they name: a sweep has several optimizers. */
void slc_training_onebit_only(slc_training_options *options);
