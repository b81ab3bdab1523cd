/* `sluice bench` as one of the ranks that train. */
#pragma once

#include "bench/sweep/options/options.h"

/* Both functions run a part of a sweep, or of a trade-off, as one rank of its world, and return this rank's exit
 * code. */
int slc_bench_as_rank(slc_bench_options *options);
int slc_bench_tradeoff_as_rank(slc_bench_options *options);
