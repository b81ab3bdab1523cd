/* The library's planner with another function that plans, and nothing fused. */
#pragma once

#include "lib/sluice/planner.h"

static inline slc_planner planner_of(slc_plan_function plan)
{
    slc_planner planner = slc_library_planner();
    planner.plan = plan;
    planner.fuse = NULL;
    return planner;
}
