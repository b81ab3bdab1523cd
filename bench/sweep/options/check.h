/* Checks of a sweep's options. */
#pragma once

#include "bench/sweep/options/sweep_options.h"

/* Checks all that can be known before the first run: names, that files are there, which lists go with each other, and
 * the options of each run. The content of files of strategies needs the model's layers, and is checked by the runs.
 * Model and size become those that the check of a run finds. Errors: ARGUMENT, UNSUPPORTED, those of reading weights.
 */
sluice_status slc_bench_options_check(slc_bench_options *options);
