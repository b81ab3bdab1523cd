/* Budgets that are found, not given: "auto:N" is N of them, evenly between the smallest that works and what all sdp
 * needs under one_ahead. */
#ifndef SLC_BENCH_BENCH_BUDGETS_H
#define SLC_BENCH_BENCH_BUDGETS_H

#include "bench/sweep/options.h"
#include "lib/plan/profile.h"

#include <signal.h>

/* The two ends, what the binary reserves included. `recompute`: layers that can, may. Errors: MEMORY. */
sluice_status slc_bench_budget_ends(const slc_profile *profile, bool recompute, uint64_t *least, uint64_t *all_sdp);
/* Number `index` of `count`, in bytes. */
uint64_t slc_bench_budget_between(uint64_t least, uint64_t all_sdp, uint64_t index, uint64_t count);

/* Collective: puts budgets in the place of each "auto:N" of the list, the same on all ranks; the profile that tells
 * them is left as profile.json in the output folder. *list: the whole list as text, to be freed; NULL: there was no
 * such entry. Errors: those of training; MEMORY. */
sluice_status slc_bench_budgets_find(sluice_world *world, slc_bench_options *options,
                                     const volatile sig_atomic_t *stops, char **list);

#endif
