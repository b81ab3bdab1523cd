/* `sluice bench` as the command that starts the ranks of a sweep, again if they died. */
#pragma once

#include "bench/sweep/options/options.h"

/* argv: the command line, argv[0] being "bench". Returns the exit code. */
int slc_bench_as_launcher(slc_bench_options *options, char **argv);
