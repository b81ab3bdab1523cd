/* Carries out the runs of one throttle, one after another in one world. Collective. */
#ifndef SLC_BENCH_BENCH_SWEEP_H
#define SLC_BENCH_BENCH_SWEEP_H

#include "bench/sweep/results.h"

#include <signal.h>
#include <stdio.h>

typedef struct {
    sluice_world *world;
    const slc_bench_options *options;
    uint64_t throttle; /* its number in the list; it is the world's throttle */
    const volatile sig_atomic_t *stops;
    FILE *out; /* rank 0's table; NULL: this rank prints nothing and collects nothing */
    slc_bench_results *results;
    /* Called on rank 0 after each run. */
    sluice_status (*keep)(const slc_bench_results *results, const slc_bench_options *options);
} slc_bench_sweep;

/* Runs all cases; those that do not fit become results too. *interrupted: a user stopped the sweep. The results so far
 * remain valid, after an error too. Errors: those of training and of `keep`, but not BUDGET, which is a result. */
sluice_status slc_bench_sweep_run(const slc_bench_sweep *sweep, bool *interrupted);

#endif
