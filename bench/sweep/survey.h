/* Measures, in the present world, a profile of the model that the options would train. */
#pragma once

#include "bench/train/options/options.h"
#include "lib/plan/profile.h"

#include <signal.h>

/* Collective: trains a few steps under the plan that needs the least memory. Rank 0 writes the profile to `path` and
 * gets it in *out (the caller destroys it); the others get NULL. Errors: those of training and writing; INTERRUPTED. */
sluice_status slc_bench_survey(sluice_world *world, const slc_training_options *options, const char *path,
                               const volatile sig_atomic_t *stops, slc_profile **out);
