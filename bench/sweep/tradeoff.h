/* `sluice bench --tradeoff`: the step time of one budget against the share of what is free that strategies get, the
 * rest being the schedule's. Writes tradeoff.json, .csv, .svg and .png, profile.json and plan.json (of the joint plan)
 * into the output folder. */
#ifndef SLC_BENCH_BENCH_TRADEOFF_H
#define SLC_BENCH_BENCH_TRADEOFF_H

#include "bench/sweep/options.h"

#include <signal.h>
#include <stdio.h>

/* Collective. Measures a profile, plans every share on rank 0, then trains each that fits. `out` counts on rank 0.
 * Errors: those of training and writing; BUDGET when nothing fits; INTERRUPTED; MISMATCH when runs ended with other
 * weights or one went over the budget. */
sluice_status slc_bench_tradeoff_measure(sluice_world *world, const slc_bench_options *options,
                                         const volatile sig_atomic_t *stops, FILE *out);

/* From options->profile alone. */
sluice_status slc_bench_tradeoff_predict(const slc_bench_options *options, FILE *out);

#endif
