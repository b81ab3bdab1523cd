/* Compares runs with tied parameters split by their uses with runs that keep them joint. */
#ifndef SLC_BENCH_BENCH_TIED_H
#define SLC_BENCH_BENCH_TIED_H

#include "bench/sweep/results.h"

#include <stdio.h>

/* Prints a row for each throttle, budget, strategy, schedule and optimizer that was run with both: medians of the step
 * and of the exposed time. Prints nothing if there are none. */
void slc_bench_tied_show(FILE *out, const slc_bench_results *results);

#endif
