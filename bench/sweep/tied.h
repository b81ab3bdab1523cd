/* Runs with tied parameters split by their uses beside those that keep them joint. */
#ifndef SLC_BENCH_BENCH_TIED_H
#define SLC_BENCH_BENCH_TIED_H

#include "bench/sweep/results.h"

#include <stdio.h>

/* A row for each throttle, budget, strategy, schedule and optimizer that both were run with: medians of the step and of
 * the exposed time. Nothing where there are none. */
void slc_bench_tied_show(FILE *out, const slc_bench_results *results);

#endif
