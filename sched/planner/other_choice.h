/* The cost of another strategy for some units of a plan: the reason why they have the one that they have. */
#pragma once

#include "lib/plan/request.h"

typedef struct {
    slc_strategy strategy; /* the best of the others; SLC_STRATEGIES: these units have no other, or nobody asked */
    bool fits;             /* a plan with it keeps to the budget */
    double step_s;         /* of the fastest such plan that was found; 0: none fits */
    uint64_t bytes; /* that a rank needs, reserved bytes included: of that plan, or of the smallest if none fits */
} slc_other_choice;

/* Finds the best other strategy for the units marked in `change` [units], which have the same one in `plan`. All other
 * strategies and recomputation stay those of the plan; the order is planned again by made_by->schedule, within
 * made_by->budget_bytes and for made_by->effort_s nominal seconds. Strategies are those that a free unit is offered. If
 * several fit, the fastest counts, else the one that needs the least. made_by's strategy, forced units, recomputation
 * and budget_of_dp are ignored; its times must be there. Errors: MEMORY, INTERRUPTED. */
sluice_status slc_other_choice_find(const slc_job *job, const slc_plan_request *made_by, const slc_plan *plan,
                                    const bool *change, slc_other_choice *out);
