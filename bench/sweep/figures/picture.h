/* The picture of a sweep: step time against budget, with a panel for each throttle and a line for each strategy, and
 * peak memory against budget. gnuplot draws it from a script and a table that stay next to it. */
#ifndef SLC_BENCH_BENCH_PICTURE_H
#define SLC_BENCH_BENCH_PICTURE_H

#include "bench/sweep/results.h"

#include <stdio.h>

/* Writes step_time.dat and step_time.gp into `folder` and has step_time.svg and .png drawn. Prints one line on `out`
 * that says what it did; a missing gnuplot is no error. Does nothing without a complete run. Errors: PATH, IO, MEMORY.
 */
sluice_status slc_bench_picture_draw(const slc_bench_results *results, const char *folder, FILE *out);

#endif
