/* The picture of a sweep: step time against budget, a panel a throttle and a line a strategy, and peak memory against
 * budget. Drawn by gnuplot, from a script and a table that stay beside it. */
#ifndef SLC_BENCH_BENCH_PICTURE_H
#define SLC_BENCH_BENCH_PICTURE_H

#include "bench/sweep/results.h"

#include <stdio.h>

/* Writes step_time.dat and step_time.gp into `folder` and has step_time.svg and .png drawn. Says in one line on `out`
 * what it did; that gnuplot is not there is no error. Does nothing without a complete run. Errors: IO, MEMORY. */
sluice_status slc_bench_picture_draw(const slc_bench_results *results, const char *folder, FILE *out);

#endif
