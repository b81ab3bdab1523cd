/* The end of a sweep: summary, pictures, files, exit code. */
#pragma once

#include "bench/sweep/results.h"

#include <stdio.h>

/* Returns the stream for text that people read: standard error if standard output is a file of results, else standard
 * output. */
FILE *slc_bench_people(const slc_bench_options *options);

/* Does everything that follows the last run. Returns the exit code: 0; EXIT_FAILED if a cell failed, a promise was not
 * kept or a file could not be written; EXIT_USAGE if nothing fits. */
int slc_bench_conclude(const slc_bench_results *results, slc_bench_options *options);
