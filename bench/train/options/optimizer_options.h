/* The training options that are numbers of the optimizer, as --beta1: those settings of lib/optim/optimizers.h that
 * have an option. Each name is an option once, whichever optimizers have it; a number that is left open is the
 * library's, which differs between them. One thread. */
#pragma once

#include "bench/train/options/training_options.h"
#include "lib/optim/optimizers.h"

/* Returns the setting whose value is options->optimizer_settings[i], as it stands in the row of the first optimizer
 * that has a setting of this name; NULL: i is beyond the last. */
const slc_optimizer_setting *slc_training_optimizer_setting(size_t i);
/* Writes the value that the library gives setting i: "0.9", or "1e-8, for lamb and onebit_lamb 1e-6". */
void slc_training_optimizer_default(size_t i, char *text, size_t bytes);

/* Returns the row of the optimizer that the options name; while they leave it open, the default's. */
const slc_optimizer_row *slc_training_optimizer_row(const slc_training_options *options);
bool slc_training_optimizer_is_given(const slc_training_options *options, size_t i);

/* Sets the fields of the optimizer that the options name, so far as they are given. */
void slc_training_optimizer_config(const slc_training_options *options, sluice_config *config);
/* Sets the numbers of the optimizer that the options leave open, to the library's values. */
void slc_training_optimizer_fill(slc_training_options *options);

/* Refuses a number that is given and that the optimizer does not have. Errors: ARGUMENT. */
sluice_status slc_training_optimizer_check(const slc_training_options *options);
/* Leaves open the numbers that this optimizer has (`had`), or those that it lacks: a sweep has several optimizers. */
void slc_training_optimizer_drop(slc_training_options *options, const char *optimizer, bool had);
