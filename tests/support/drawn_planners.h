/* Planners for tests of the engine that know no times. The schedule's name says what they draw: "drawn/SEED" is
 * strategies, recomputation and an order of runs of blocks with late operations, in as much memory as that takes;
 * "NAME/SEED" is the plan of the schedule NAME for drawn times and a budget without a spare byte. */
#pragma once

#include "lib/plan/request.h"

/* The two functions of an slc_planner. */
sluice_status plan_as_named(void *context, const slc_job *job, const slc_plan_request *request,
                            slc_plan_answer *answer);

/* Fuses neighbours that may be one unit: each pair with a chance that the seed draws, from never to always. */
sluice_status fuse_drawn(void *context, const slc_job *job, const slc_fuse_request *request, uint32_t *group);

/* A re-plan draws units anew with these two: each plan of plan_ever_faster is predicted to be faster than all before,
 * and by wants_unread_times every schedule wants times, which it does not look at. */
sluice_status plan_ever_faster(void *context, const slc_job *job, const slc_plan_request *request,
                               slc_plan_answer *answer);
bool wants_unread_times(void *context, const char *schedule);
