/* `sluice bench --join A B ...`: the results of several sweeps in one table and picture. */
#pragma once

#include "bench/sweep/results.h"

#include <stdio.h>

/* Reads results.json of each source (a sweep's folder, or the file) and adds its rows to *out, which the caller frees,
 * also after an error. Each row says where it is from ("source", "environment", "date") and in which settings it
 * differs from others ("label"). Errors: PATH, IO, FORMAT (names the file), ARGUMENT (a source is there twice), MEMORY.
 */
sluice_status slc_bench_join_read(char *const *sources, uint64_t count, slc_bench_results *out);

/* Reads the sources of the options, prints their table, and writes results.json, results.csv and the picture into the
 * folder of --output. Errors: those above, PATH, IO. */
sluice_status slc_bench_join(slc_bench_options *options, FILE *out);
