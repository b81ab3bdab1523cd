/* The parts of a job that a step without some layers leaves out. */
#pragma once

#include "lib/plan/job.h"

/* Does a step that leaves these layers out, left_out[l] of layer l, leave a unit out? A unit that several layers share,
 * and the parts of a split parameter, are in every step. */
static inline bool slc_unit_left_out(const slc_unit *unit, const bool *left_out)
{
    bool all = unit->role == SLC_UNIT_WHOLE && (unit->fused || unit->use_count == 1);
    for (uint32_t i = 0; all && i < unit->use_count; i++) all = left_out[unit->uses[i].layer];
    return all;
}
