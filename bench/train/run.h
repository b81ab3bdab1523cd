/* One training run in this process: from the options to losses, times and memory. `sluice train` shows one; `sluice
 * bench` makes many, one after another, on one world. Collective: every rank of the world makes the same calls. */
#pragma once

#include "bench/train/options/options.h"
#include "bench/train/summary.h"
#include "bench/train/watch.h"

/* `watch` may be NULL. options->steps is set if --epochs leaves it to the data. The caller frees the result with
 * slc_training_result_free, also after an error: it then holds what it has of the steps so far. Errors: those of the
 * library; INTERRUPTED after a second stop. A file that could not be written is no error of the run: it is reported in
 * out->outputs. */
sluice_status slc_training_run(sluice_world *world, slc_training_options *options, const slc_training_watch *watch,
                               slc_training_result *out);
