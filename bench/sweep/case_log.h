/* The log of each run of a sweep: the files of bench/train/log in a folder of its own, OUTPUT/logs/NAME, while it runs.
 * The name has what tells the run from the others. Pictures are drawn from the logs, which have every step. Rank 0
 * alone has logs; one thread uses one. */
#pragma once

#include "bench/sweep/options/options.h"
#include "bench/train/log/run_log.h"

#include <jansson.h>

enum { SLC_CASE_LOG_NAME = 256 };

typedef struct {
    char name[SLC_CASE_LOG_NAME]; /* "logs/..." below the folder of the sweep */
    char folder[SLC_FOLDER_BYTES];
    slc_training_options options; /* the run's, with this folder */
    slc_training_log *log;        /* NULL: none */
} slc_case_log;

/* Opens the log of a run, and replaces what an interrupted run has left. `attempt` is 0 for the first attempt at a run,
 * and counts those after it. A log that cannot be written is no error of the sweep: a warning says so, and the run has
 * no log. The struct stays where it is until slc_case_log_end. */
void slc_case_log_begin(slc_case_log *log, const char *output, const slc_bench_case *one, uint32_t attempt);
void slc_case_log_step(slc_case_log *log, const slc_training_step *step);
/* Closes the files; a warning says what is not on the disk. */
void slc_case_log_end(slc_case_log *log);

/* Returns the runs with "losses", "elapsed_s" and "tokens_seen" of every step, as their logs in the folder have them;
 * those of runs without a log, or with one of another run, stay as they are. The caller decrefs the result. NULL: no
 * memory. */
json_t *slc_case_logs_read(const json_t *runs, const char *output);
