/* The library's planner with another function that plans, and nothing fused. */
#ifndef SLC_TESTS_PLANNER_OF_H
#define SLC_TESTS_PLANNER_OF_H

#include "lib/sluice/planner.h"

static inline slc_planner planner_of(slc_plan_function plan)
{
    slc_planner planner = slc_library_planner();
    planner.plan = plan;
    planner.fuse = NULL;
    return planner;
}

#endif
