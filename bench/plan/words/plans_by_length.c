/* tests/command/recipe/recipe_plan_test.sh covers this file. */
#include "bench/plan/words/plans_by_length.h"

slc_phase_plan slc_plans_by_length_find(const slc_plans_by_length *plans, uint32_t length)
{
    slc_phase_plan under = plans->whole;
    for (uint32_t s = 0; length && s < plans->count && length <= plans->lengths[s]; s++)
        under = (slc_phase_plan){plans->profiles[s], plans->plans[s]};
    return under;
}

void slc_plans_by_length_fini(slc_plans_by_length *plans)
{
    for (uint32_t s = 0; s < plans->count; s++) {
        slc_plan_destroy(plans->plans[s]);
        slc_profile_destroy(plans->profiles[s]);
    }
    *plans = (slc_plans_by_length){.count = 0};
}
