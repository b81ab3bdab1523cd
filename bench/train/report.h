/* A training run as a JSON object (docs/formats.md). */
#pragma once

#include "bench/cli/output/result_file.h"
#include "bench/train/run.h"

#include <jansson.h>

/* {"model", "world", "strategy", ..., "losses", "weights_sha256"}: one element of "runs". NULL without memory. */
json_t *slc_training_run_json(const sluice_world *world, const slc_training_options *options,
                              const slc_training_result *result);
/* The options of a run that its JSON has under "settings". NULL without memory. */
json_t *slc_training_settings_json(const slc_training_options *options);

/* Writes {"runs": runs, "environment": ...} to an open file, whose commit reports what could not be written. Takes
 * ownership of `runs`. Errors: MEMORY. */
sluice_status slc_training_write_json(slc_result_file *file, const sluice_world *world, json_t *runs);
