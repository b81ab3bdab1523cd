/* Tells which cells of a sweep have their results, and how far the sweep is. */
#pragma once

#include "bench/sweep/results.h"

typedef enum { SLC_CELL_OPEN, SLC_CELL_RAN, SLC_CELL_MISFIT, SLC_CELL_FAILED } slc_cell_state;

/* The state of one run of a cell. RAN: this repetition is complete. MISFIT, FAILED: of any repetition, since a cell
 * that does not fit or has failed is not repeated. Errors: MEMORY. */
sluice_status slc_bench_cell_state(const slc_bench_results *results, const slc_bench_case *one, slc_cell_state *state);

/* Counts over all throttles and repetitions. */
typedef struct {
    uint64_t cells, finished; /* finished: every repetition ran, or it does not fit */
    uint64_t misfits, failed; /* cells */
    uint64_t runs, ran;       /* repetitions; those that ran */
} slc_bench_tally;

/* Errors: MEMORY. */
sluice_status slc_bench_tally_make(const slc_bench_results *results, const slc_bench_options *options,
                                   slc_bench_tally *out);
