/* A log is the files that a run writes while it goes on: --log DIR with metrics.jsonl, metrics.csv, TensorBoard's event
 * file, run.json and options.json, and the table of --csv. A step's lines are in the files when slc_training_log_step
 * returns, and on the disk within SLC_TRAINING_LOG_SYNC_S seconds and the time that the disk takes. Rank 0 alone has a
 * log; one thread uses it. */
#pragma once

#include "bench/train/options/options.h"
#include "bench/train/result.h"

#include <jansson.h>
#include <sluice/world.h>

#define SLC_TRAINING_LOG_SYNC_S 4.0

typedef struct slc_training_log slc_training_log;

/* Checks that there may be a log in the folder of --log. It makes the folder, with those that it lies in. Errors:
 * ARGUMENT (the folder has the log of another run, and neither --resume, --go-on nor --overwrite was given), PATH, IO.
 */
sluice_status slc_training_log_check(const slc_training_options *options);

/* Opens the files that the options ask for, and changes none. Errors: as above, MEMORY, SYSTEM. */
sluice_status slc_training_log_open(const slc_training_options *options, slc_training_log **out);

/* Removes, before the first step, what earlier logs say of steps after number `steps_before`, and writes run.json and
 * options.json. `about` is taken over: what run.json has besides options, folder and command line; it may be NULL if
 * there is no --log. Errors: PATH, IO, MEMORY. */
sluice_status slc_training_log_begin(slc_training_log *log, uint64_t steps_before, json_t *about);

/* Appends a step. A file that cannot be written is told once on standard error, and the run goes on. */
void slc_training_log_step(slc_training_log *log, const slc_training_step *step);

/* Appends a sample to samples.jsonl, which a run without samples has not. */
void slc_training_log_sample(slc_training_log *log, uint64_t step, const char *text);

/* Appends the evaluation behind the last step; only its number, loss and accuracy count. */
void slc_training_log_end(slc_training_log *log, const slc_training_step *step);

/* Closes all files. NULL is allowed. Errors: PATH, IO: the first file that is not whole. */
sluice_status slc_training_log_close(slc_training_log **log);
