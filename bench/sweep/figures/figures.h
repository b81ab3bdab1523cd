/* A sweep's results become lines, pictures and a file here, next to its table (table.h). gnuplot draws pictures
 * from a script and a table that stay next to them; a missing gnuplot is no error. Errors: PATH, IO, MEMORY. */
#pragma once

#include "bench/sweep/results.h"

#include <stdio.h>

/* csv.c: writes a table that other programs read (docs/formats.md): figures, then every option that a number depends
 * on, then the machine. `path` NULL: it writes nothing. */
sluice_status slc_bench_results_write_csv(const slc_bench_results *results, const char *path);
/* Writes one field of such a table: nothing if the value is NULL or null. */
void slc_bench_put_csv(FILE *file, const json_t *value);

/* picture.c: step time against budget, with a panel for each throttle and a line for each strategy, and peak memory
 * against budget. Writes step_time.dat and step_time.gp into `folder` and has step_time.svg and .png drawn. Prints one
 * line on `out` that says what it did. Does nothing without a complete run. */
sluice_status slc_bench_picture_draw(const slc_bench_results *results, const char *folder, FILE *out);

/* micro_batches.c: step time against the micro-batches of a step, with a panel for each throttle and a line for each
 * strategy and pipeline, as slc_bench_picture_draw does: micro_batches.dat, .gp, .svg and .png. Does nothing where all
 * runs have one number. */
sluice_status slc_bench_micro_batches_draw(const slc_bench_results *results, const char *folder, FILE *out);

/* losses.c compares optimizers. Returns true if the runs use several; if not, the other functions do nothing. */
bool slc_bench_losses_compare(const slc_bench_results *results);
/* Prints a row for each optimizer under each throttle and budget: the final loss, also in per cent of the first
 * optimizer's; steps and bytes before and after the freeze; the time of all steps. */
void slc_bench_losses_show(FILE *out, const slc_bench_results *results);
/* Draws loss against step and against time as slc_bench_picture_draw does: losses.dat, losses.gp, losses.svg and .png.
 */
sluice_status slc_bench_losses_draw(const slc_bench_results *results, const char *folder, FILE *out);

/* tied.c: prints a row for each throttle, budget, strategy, schedule and optimizer that was run with tied parameters
 * both split by their uses and joint: medians of the step and of the exposed time. Prints nothing if there are none. */
void slc_bench_tied_show(FILE *out, const slc_bench_results *results);

/* winners.c: prints a line for each throttle and budget: the winner, or that there is none and who is as fast. A winner
 * is one whose interval, from its fastest to its slowest run, does not touch that of any other plan. */
void slc_bench_winners_show(FILE *out, const json_t *runs);
/* Prints auto beside the fastest uniform strategy of each budget; nothing if auto did not run. */
void slc_bench_auto_show(FILE *out, const json_t *runs);
