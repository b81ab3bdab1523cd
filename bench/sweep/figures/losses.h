/* Compares optimizers: loss against step and against time. */
#ifndef SLC_BENCH_BENCH_LOSSES_H
#define SLC_BENCH_BENCH_LOSSES_H

#include "bench/sweep/results.h"

#include <stdio.h>

/* Do the runs use several optimizers? If not, the other functions do nothing. */
bool slc_bench_losses_compare(const slc_bench_results *results);

/* Prints a row for each optimizer under each throttle and budget: the final loss, also in per cent of the first
 * optimizer's; steps and bytes before and after the freeze; the time of all steps. */
void slc_bench_losses_show(FILE *out, const slc_bench_results *results);

/* Writes losses.dat and losses.gp into `folder` and has losses.svg and .png drawn, as slc_bench_picture_draw does.
 * Errors: PATH, IO, MEMORY. */
sluice_status slc_bench_losses_draw(const slc_bench_results *results, const char *folder, FILE *out);

#endif
