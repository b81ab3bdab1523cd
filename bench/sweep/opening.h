/* Begins a sweep: finds its folder, reads the results that the folder holds, and checks that the sweep can continue
 * them. */
#pragma once

#include "bench/sweep/budgets.h"
#include "bench/sweep/results.h"

/* Makes the folder of a sweep on `ranks` ranks and locks it, reads the results that it has into *results and leaves
 * both files whole, without rows of cells that were interrupted or, with `retry`, have failed. If no folder was
 * given it chooses one that has no results, or those of a sweep that this one can continue. Errors: ARGUMENT (results
 * of other settings or of another machine, another sweep at work), PATH, IO, FORMAT, MEMORY. */
sluice_status slc_bench_open(slc_bench_options *options, int ranks, bool retry, slc_bench_results *results);

/* Sets options->output to the first of today's folders that `suits` accepts: it returns OK for a folder that is new or
 * can be continued, and ARGUMENT for one that cannot. With --overwrite the first folder is taken. Errors: other errors
 * of `suits`; ARGUMENT. */
sluice_status slc_bench_choose_folder(slc_bench_options *options, int ranks, const json_t *settings,
                                      sluice_status (*suits)(const slc_bench_options *options, const json_t *settings));

/* Reads the results again, with what ranks have left in the folder. The caller has freed *results. Errors: those of
 * reading. */
sluice_status slc_bench_reopen(const slc_bench_options *options, slc_bench_results *results);

/* Writes results.json and results.csv. Errors: PATH, IO. */
sluice_status slc_bench_save(const slc_bench_results *results, const slc_bench_options *options);

/* slc_bench_results_ends returns the ends of budgets that the results know; 0: they know none.
 * slc_bench_results_set_ends sets them. Errors: MEMORY. */
slc_bench_ends slc_bench_results_ends(const slc_bench_results *results);
sluice_status slc_bench_results_set_ends(slc_bench_results *results, const slc_bench_ends *ends);
