/* The parts of a job that a step without some layers leaves out. */
#pragma once

#include "lib/plan/job.h"

#include <math.h>

/* Returns true if a step that leaves these layers out, left_out[l] of layer l, leaves the unit out. A unit that several
 * layers share, and the parts of a split parameter, are in every step. */
static inline bool slc_unit_left_out(const slc_unit *unit, const bool *left_out)
{
    bool all = unit->role == SLC_UNIT_WHOLE && (unit->fused || unit->use_count == 1);
    for (uint32_t i = 0; all && i < unit->use_count; i++) all = left_out[unit->uses[i].layer];
    return all;
}

/* The probability with which a step keeps a unit, if it keeps layer l with keeps[l] (slc_times.keeps; NULL: always). */
static inline double slc_unit_keeps(const slc_unit *unit, const double *keeps)
{
    double none = keeps && unit->role == SLC_UNIT_WHOLE && (unit->fused || unit->use_count == 1);
    for (uint32_t i = 0; none > 0 && i < unit->use_count; i++) none *= 1 - keeps[unit->uses[i].layer];
    return 1 - none;
}

/* A new plan is made when the mean depth of steps has moved by this percentage of the job's layers. */
enum { SLC_DEPTH_PERCENT = 5 };

static inline bool slc_depth_moved(const slc_job *job, double from, double to)
{
    return fabs(to - from) >= 0.01 * SLC_DEPTH_PERCENT * job->layer_count;
}
