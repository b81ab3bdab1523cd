/* Measures a profile by training a few steps. */
#pragma once

#include "bench/train/options/options.h"

/* Trains `options->steps` steps with the serial schedule; rank 0 writes the profile to `path` and prints it. `args` are
 * those of the command: it starts the ranks with them if no launcher has. Returns the exit code. */
int slc_training_profile(slc_training_options *options, const char *path, char *const *args);
