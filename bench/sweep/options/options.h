/* The command line of `sluice bench`, as the options of a sweep, and the runs that they ask for. */
#pragma once

#include "bench/sweep/options/cases.h"
#include "bench/sweep/options/lists.h"

/* Reads the command line; on a wrong option argp prints the error and exits. The caller frees the lists by
 * slc_bench_options_free. Errors: ARGUMENT, UNSUPPORTED, MEMORY. */
sluice_status slc_bench_options_parse(int argc, char **argv, slc_bench_options *out);
