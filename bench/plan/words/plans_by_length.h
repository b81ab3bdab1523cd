/* The plans of a run whose sequences grow: steps of whole sequences have one, and steps of shorter ones may have
 * others.
 */
#pragma once

#include "lib/plan/profile.h"

#include <sluice/runtime.h>

/* A plan, and the profile that it was made from. */
typedef struct {
    const slc_profile *profile; /* its job has the recipe's most micro-batches */
    const slc_plan *plan;
} slc_phase_plan;

typedef struct {
    slc_phase_plan whole; /* of steps with whole sequences; borrowed */
    /* The plans of shorter steps, which are owned. Each is of steps with at most lengths[s] tokens a sequence, and
     * lengths fall. */
    uint32_t count, lengths[SLUICE_SHAPES_MOST];
    slc_profile *profiles[SLUICE_SHAPES_MOST];
    slc_plan *plans[SLUICE_SHAPES_MOST];
} slc_plans_by_length;

/* Returns the plan that steps of this length run under; length 0: that of whole sequences. */
slc_phase_plan slc_plans_by_length_find(const slc_plans_by_length *plans, uint32_t length);
void slc_plans_by_length_fini(slc_plans_by_length *plans);
