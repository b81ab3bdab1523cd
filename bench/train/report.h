/* How a training run is shown: a progress line while it goes, and the JSON object of the design's contract after. */
#ifndef SLC_BENCH_TRAINING_REPORT_H
#define SLC_BENCH_TRAINING_REPORT_H

#include "bench/cli/result_file.h"
#include "bench/train/run.h"

#include <jansson.h>
#include <stdio.h>

/* {"model", "world", "strategy", ..., "losses", "weights_sha256"}: one element of "runs". NULL without memory. */
json_t *slc_training_run_json(const sluice_world *world, const slc_training_options *options,
                              const slc_training_result *result);
/* The machine and the build: "environment". */
json_t *slc_training_environment_json(const sluice_world *world);

/* {"runs": runs, "environment": ...} to a file that is open for it; what cannot be written shows at its commit. Takes
 * `runs` over. Errors: MEMORY. */
sluice_status slc_training_write_json(slc_result_file *file, const sluice_world *world, json_t *runs);

/* The line of one step, rewritten in place on a terminal, else printed every few seconds. Rank 0 only. */
typedef struct {
    FILE *out;
    bool terminal;
    uint64_t steps, tokens_per_step; /* of the whole run; of all ranks */
    uint64_t start_ns, shown_ns;
    uint64_t before; /* steps before the first that is shown */
    bool line_open;
} slc_training_progress;

void slc_training_progress_init(slc_training_progress *progress, uint64_t steps, uint64_t tokens_per_step);
void slc_training_progress_show(slc_training_progress *progress, const slc_training_step *step);
void slc_training_progress_end(slc_training_progress *progress); /* leaves the line */

#endif
