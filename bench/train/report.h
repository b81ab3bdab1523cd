/* Shows a training run: a progress line while it runs, and afterwards a JSON object (docs/formats.md). */
#pragma once

#include "bench/cli/output/result_file.h"
#include "bench/train/run.h"

#include <jansson.h>
#include <stdio.h>

/* {"model", "world", "strategy", ..., "losses", "weights_sha256"}: one element of "runs". NULL without memory. */
json_t *slc_training_run_json(const sluice_world *world, const slc_training_options *options,
                              const slc_training_result *result);
/* The options of a run that its JSON has under "settings". NULL without memory. */
json_t *slc_training_settings_json(const slc_training_options *options);

/* Writes {"runs": runs, "environment": ...} to an open file, whose commit reports what could not be written. Takes
 * ownership of `runs`. Errors: MEMORY. */
sluice_status slc_training_write_json(slc_result_file *file, const sluice_world *world, json_t *runs);

/* The line of one step, rewritten in place on a terminal, else printed every few seconds. Rank 0 only. */
typedef struct {
    FILE *out;
    bool terminal;
    uint64_t steps, per_step; /* of the whole run; tokens or images of all ranks */
    bool images;              /* they are images */
    uint64_t start_ns, shown_ns;
    uint64_t before; /* steps before the first that is shown */
    bool line_open;
} slc_training_progress;

void slc_training_progress_init(slc_training_progress *progress, uint64_t steps, uint64_t per_step, bool images);
void slc_training_progress_show(slc_training_progress *progress, const slc_training_step *step);
void slc_training_progress_end(slc_training_progress *progress); /* ends the line */
