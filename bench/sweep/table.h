/* The sweep as people read it: a row a run as it ends, and a summary. */
#ifndef SLC_BENCH_BENCH_TABLE_H
#define SLC_BENCH_BENCH_TABLE_H

#include "bench/sweep/results.h"

#include <stdio.h>

/* What world this is and the names of the columns. */
void slc_bench_table_begin(FILE *out, const sluice_world *world, const slc_bench_options *options, const char *throttle,
                           uint32_t tokens);
void slc_bench_table_run(FILE *out, const json_t *run);
void slc_bench_table_misfit(FILE *out, const json_t *misfit);

/* The fastest for each budget, and the promises that held: equal weights, peaks as planned. Results: whether the two
 * held. */
bool slc_bench_table_summary(FILE *out, const slc_bench_results *results);

/* The line of the run that goes on, on a terminal only. */
typedef struct {
    FILE *out;                 /* NULL: not shown */
    uint64_t total;            /* runs of the whole sweep */
    uint64_t done, begun_with; /* runs that have ended; those before this process */
    uint64_t start_ns;
} slc_bench_progress;

void slc_bench_progress_begin(slc_bench_progress *progress, uint64_t done, uint64_t total);
void slc_bench_progress_step(const slc_bench_progress *progress, const slc_bench_case *one,
                             const slc_training_step *step);
void slc_bench_progress_clear(const slc_bench_progress *progress);

#endif
