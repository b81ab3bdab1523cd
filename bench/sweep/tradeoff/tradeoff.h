/* `sluice bench --tradeoff`: finds the step time within one budget for each share of the free memory that strategies
 * get; the schedule gets the rest. Writes tradeoff.json, .csv, .svg and .png, profile.json and plan.json (of the joint
 * plan) into the output folder. */
#pragma once

#include "bench/sweep/options/options.h"

#include <signal.h>
#include <stdio.h>

/* Collective. Measures a profile, plans every share on rank 0, then trains each that fits. `out` is used on rank 0
 * only. Errors: those of training and writing; BUDGET if nothing fits; INTERRUPTED; MISMATCH if runs ended with
 * different weights or one exceeded the budget. */
sluice_status slc_bench_tradeoff_measure(sluice_world *world, slc_bench_options *options,
                                         const volatile sig_atomic_t *stops, FILE *out);

/* Plans and simulates every share from options->profile, and trains none. Errors as above. */
sluice_status slc_bench_tradeoff_predict(slc_bench_options *options, FILE *out);
