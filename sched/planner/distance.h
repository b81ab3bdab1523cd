/* The parts of a plan's distance to the slot model's bound. A ladder leads from one to the other. Each of its steps is
 * the time of a training step that is really worked out, and differs from the one before in one thing:
 *   bound      a lower bound of the model
 *   model      the model's best answer for the budget
 *   choices    the model with the plan's own strategies and recomputation, for the same budget
 *   blocks     that answer in whole runs of blocks, simulated. Operations wait for data and never for memory, and one
 *              pays its latency once, however many runs it has. Never longer than the next one
 *   order      the plan's own order, simulated in the same way
 *   latency    the same, with the latency of each run
 *   plan       the plan, in which operations also wait for memory that others use
 * Time outside of slots is no part of any of these: the planner adds it.
 * A step that comes out below the one before it counts as equal to it, and one above the plan as equal to the plan. So
 * no part is negative, and the parts add up to the distance. */
#pragma once

#include "sched/joint/joint.h"

/* Divides the distance between `bound_s` and answer->plan; a plan below the bound has parts of 0. The model is asked
 * for at most `most_s` nominal seconds of work. out->known is false if that is not enough, if bound_s is 0, or if the
 * model has no answer with the plan's choices. Fields of *out that are not parts stay 0. Errors: MEMORY; FORMAT (the
 * solver failed); INTERRUPTED. */
sluice_status slc_distance_find(const slc_joint_request *request, const slc_joint_answer *answer, double bound_s,
                                double most_s, slc_plan_distance *out);
