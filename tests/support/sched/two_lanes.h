/* Runs a plan as two lanes would, at random speeds, and looks at what really happens. Memory is claimed when an item
 * starts and released when one ends. Every block of every value and gradient, and every activation, carries a tag that
 * says what it is, so that reading the wrong one, or one that is being written, is noticed. This code knows nothing of
 * what planner and validator think. Operations start in order, several may be under way, and they end in order. A run
 * is some passes, of which the first leaves late items out, and a drain, which runs only those. */
#pragma once

#include "tests/support/sched/lanes_state.h"

/* Runs steps, evaluation passes and steps, with drains in between. t->error holds the result. `t` is large: do not keep
 * it on the stack. */
void two_lanes_run(two_lanes *t, const slc_job *job, const slc_plan *plan, uint64_t seed);

/* Runs the same with steps that leave layers out: left_out [steps * layers], step s those of s modulo `steps`. What is
 * left out claims and releases memory but touches none; values that are left out must be there unchanged afterwards.
 * The job is not compressed. */
void two_lanes_run_some(two_lanes *t, const slc_job *job, const slc_plan *plan, const bool *left_out, uint32_t steps,
                        uint64_t seed);
