/* The beginning of a sweep: its folder, what that holds already, and whether the two go together. */
#pragma once

#include "bench/sweep/budgets.h"
#include "bench/sweep/results.h"

/* Makes the folder of a sweep on `ranks` ranks and locks it, reads the results that it has into *results and leaves
 * both files whole, without rows of cells that were interrupted or, with `retry`, have failed. If no folder was
 * given it chooses one that has no results, or those of a sweep that this one can continue. Errors: ARGUMENT (results
 * of other settings or of another machine, another sweep at work), PATH, IO, FORMAT, MEMORY. */
sluice_status slc_bench_open(slc_bench_options *options, int ranks, bool retry, slc_bench_results *results);

/* Sets options->output to the first of today's folders that `suits`: it says OK of one that is new or can be gone on
 * from, ARGUMENT of one that cannot. With --overwrite the first one does. Errors: others of `suits`; ARGUMENT. */
sluice_status slc_bench_choose_folder(slc_bench_options *options, int ranks, const json_t *settings,
                                      sluice_status (*suits)(const slc_bench_options *options, const json_t *settings));

/* Reads them again: what ranks have left in the folder. The caller has freed *results. Errors: as of reading. */
sluice_status slc_bench_reopen(const slc_bench_options *options, slc_bench_results *results);

/* Writes results.json and results.csv. Errors: PATH, IO. */
sluice_status slc_bench_save(const slc_bench_results *results, const slc_bench_options *options);

/* The ends of budgets that results know; 0: they do not. Sets them. Errors: MEMORY. */
slc_bench_ends slc_bench_results_ends(const slc_bench_results *results);
sluice_status slc_bench_results_set_ends(slc_bench_results *results, const slc_bench_ends *ends);
