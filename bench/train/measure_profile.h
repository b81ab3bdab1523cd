/* Measuring a profile by training a few steps. */
#ifndef SLC_BENCH_TRAINING_PROFILE_H
#define SLC_BENCH_TRAINING_PROFILE_H

#include "bench/train/options.h"

/* Trains `options->steps` steps with the serial schedule and writes the profile; rank 0 shows it when it is another
 * file than standard output. argv: of the command, to start the ranks with where no launcher did. Results: the exit
 * code. */
int slc_training_profile(slc_training_options *options, const char *path, char *const *args);

#endif
