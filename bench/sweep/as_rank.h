/* `sluice bench` as one of the ranks that train. */
#pragma once

#include "bench/sweep/options/options.h"

/* Run a part of a sweep, or of a trade-off, as one rank of its world, and return the exit code of this rank. */
int slc_bench_as_rank(slc_bench_options *options);
int slc_bench_tradeoff_as_rank(slc_bench_options *options);
