/* The end of a sweep: summary, pictures, files, exit code. */
#pragma once

#include "bench/sweep/results.h"

#include <stdio.h>

/* Where text for people goes: to standard error where standard output is a file of results. */
FILE *slc_bench_people(const slc_bench_options *options);

/* Does everything that follows the last run. Returns the exit code: 0; EXIT_FAILED
 * where a cell failed, a promise was not kept or a file could not be written; EXIT_USAGE where nothing fits. */
int slc_bench_conclude(const slc_bench_results *results, slc_bench_options *options);
