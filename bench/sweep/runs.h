/* Carries out the runs of one throttle, one after another in one world. Collective. */
#pragma once

#include "bench/sweep/folder/under_way.h"
#include "bench/sweep/results.h"

#include <signal.h>
#include <stdio.h>

typedef struct {
    sluice_world *world;
    const slc_bench_options *options;
    const volatile sig_atomic_t *stops;
    FILE *out;                  /* rank 0's table; NULL: this rank prints nothing and collects nothing */
    slc_bench_results *results; /* rank 0's, in which runs of an earlier sweep may be */
    slc_under_way *way;         /* rank 0's word to its launcher; NULL: nobody restarts it */
} slc_bench_sweep;

/* The first run that this part makes, of those of its throttle. */
uint64_t slc_bench_sweep_first(const slc_bench_options *options);

/* Makes all runs from there on that the results lack; those that do not fit become results too, and the files of the
 * folder are written after each. *interrupted: a user stopped the sweep. The results so far remain valid, after an
 * error too. A run that fails becomes a row and ends the part. Errors: those of training and of writing, but not
 * BUDGET, which is a result. */
sluice_status slc_bench_sweep_run(const slc_bench_sweep *sweep, bool *interrupted);
