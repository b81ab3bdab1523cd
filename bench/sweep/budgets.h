/* Budgets that are found, not given: "auto:N" means N budgets, evenly spaced between the smallest that works and what
 * all sdp needs under one_ahead. */
#pragma once

#include "bench/sweep/options/options.h"
#include "lib/plan/profile.h"

#include <signal.h>

/* Finds the two ends in bytes, including what the binary reserves. `recompute`: layers that can recompute may do so.
 * Errors: MEMORY. */
sluice_status slc_bench_budget_ends(const slc_profile *profile, bool recompute, uint64_t *least, uint64_t *all_sdp);
/* Returns budget number `index` of `count`, in bytes. */
uint64_t slc_bench_budget_between(uint64_t least, uint64_t all_sdp, uint64_t index, uint64_t count);

/* The ends between which budgets are found, in bytes; 0: not known. */
typedef struct {
    uint64_t least, all_sdp;
} slc_bench_ends;

/* Returns true if the list has an "auto:N". */
bool slc_bench_budgets_are_found(const slc_bench_options *options);
/* Replaces each "auto:N" of the list by budgets between these ends. Errors: MEMORY. */
sluice_status slc_bench_budgets_set(slc_bench_options *options, const slc_bench_ends *ends);
/* Collective: the result is the same on all ranks. *ends are the ends that rank 0 knows already. If it knows none, they
 * are found, and the profile from which they follow is left as profile.json in the output folder. Without an "auto:N"
 * nothing is done. Errors: those of training; MEMORY. */
sluice_status slc_bench_budgets_find(sluice_world *world, slc_bench_options *options,
                                     const volatile sig_atomic_t *stops, slc_bench_ends *ends);
