/* Results of a sweep as a table that other programs read (docs/formats.md): figures, then every option that a number
 * depends on, then the machine. */
#ifndef SLC_BENCH_SWEEP_CSV_H
#define SLC_BENCH_SWEEP_CSV_H

#include "bench/sweep/results.h"

/* `path` NULL: it writes nothing. Errors: PATH, IO. */
sluice_status slc_bench_results_write_csv(const slc_bench_results *results, const char *path);

#endif
