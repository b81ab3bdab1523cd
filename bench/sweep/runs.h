/* The runs of one throttle, one after another in one world. Collective. */
#ifndef SLC_BENCH_BENCH_SWEEP_H
#define SLC_BENCH_BENCH_SWEEP_H

#include "bench/sweep/results.h"

#include <signal.h>
#include <stdio.h>

typedef struct {
    sluice_world *world;
    const slc_bench_options *options;
    uint64_t throttle; /* its number in the list: the world's */
    const volatile sig_atomic_t *stops;
    FILE *out; /* rank 0's table; NULL: this rank is silent and gathers nothing */
    slc_bench_results *results;
    /* Rank 0, after each run. */
    sluice_status (*keep)(const slc_bench_results *results, const slc_bench_options *options);
} slc_bench_sweep;

/* Runs what fits. *interrupted: a user stopped it; the results so far stand, after an error too. Errors: those of
 * training and of `keep`; never BUDGET, which is a result. */
sluice_status slc_bench_sweep_run(const slc_bench_sweep *sweep, bool *interrupted);

#endif
