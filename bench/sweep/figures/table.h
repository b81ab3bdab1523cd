/* The sweep for people to read: a row for each combination when its last repetition ends, and a summary. */
#pragma once

#include "bench/sweep/finished.h"

#include <stdio.h>

/* Says that the folder has results already which this sweep goes on from; nothing if it has none. */
void slc_bench_table_continued(FILE *out, const char *folder, const slc_bench_results *results);
/* Prints a description of the world and the names of the columns. */
void slc_bench_table_begin(FILE *out, const sluice_world *world, const slc_bench_options *options, const char *throttle,
                           uint32_t tokens);
/* Prints the row of the combination to which run number `index` belongs: medians over its repetitions, and half the
 * distance between the fastest and the slowest. */
void slc_bench_table_case(FILE *out, const json_t *runs, size_t index);
/* Prints the row of a case that an earlier sweep has run; nothing if it has no runs. */
void slc_bench_table_cell(FILE *out, const json_t *runs, const slc_bench_case *one);
/* Prints the row of the cell that failed last. */
void slc_bench_table_failure(FILE *out, const slc_bench_results *results);
/* Prints what the runs of a part leave to say: rows of combinations that never came to repetition number `repeat`, and
 * one line for each strategy that does not fit some budgets. */
void slc_bench_table_rest(FILE *out, const slc_bench_results *results, const slc_bench_options *options, uint64_t part);
/* Prints a table of rows that come from `sources` sweeps: a row for each cell, what does not fit, and the fastest of
 * each budget. */
void slc_bench_table_joined(FILE *out, const slc_bench_results *results, uint64_t sources);

/* Prints the fastest run for each budget, and whether the promises held: equal weights, peaks as planned. Returns
 * whether both held. */
bool slc_bench_table_summary(FILE *out, const slc_bench_results *results);

/* Prints how many cells have failed, if any, and how many are finished, if not all. */
void slc_bench_table_tally(FILE *out, const slc_bench_tally *tally);

/* Prints in three lines what the demo has shown, and where its files are. */
void slc_bench_table_demo(FILE *out, const slc_bench_results *results, const slc_bench_options *options);

/* The progress line of the current run; shown on a terminal only. */
typedef struct {
    FILE *out;                /* NULL: not shown */
    uint64_t total, part_end; /* number of runs in the whole sweep, and up to the end of the present part */
    uint64_t done;            /* runs that have ended */
    uint64_t made;            /* runs that this process has made; the others were there */
    uint64_t again;           /* runs that were made again, because something disturbed them */
    uint64_t start_ns;
} slc_bench_progress;

/* `count` is the number of runs of a part. Nobody knows how long the runs of later parts take, on another network or on
 * more ranks, so the time left is that of the present part. */
void slc_bench_progress_begin(slc_bench_progress *progress, uint64_t done, uint64_t count, uint64_t total);
void slc_bench_progress_step(const slc_bench_progress *progress, const slc_bench_case *one,
                             const slc_training_step *step);
/* Prints, on standard error whatever it is, that a round of repetitions is done, and the time left. */
void slc_bench_progress_round(const slc_bench_progress *progress, uint64_t round, uint64_t rounds);
void slc_bench_progress_clear(const slc_bench_progress *progress);
