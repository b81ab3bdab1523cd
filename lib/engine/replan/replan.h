/* Making plans and changing them at a step boundary. Private to lib/engine. */
#pragma once

#include "lib/engine/stage_state.h"
#include "lib/plan/request.h"

#include <sluice/runtime.h>

/* ---- request.c: what the planner is asked ---- */
/* The request that the configuration makes, with the least of the ranks' budgets. Collective. */
sluice_status slc_engine_first_request(sluice_runtime *rt, slc_plan_request *request);
/* The request that was made last. */
slc_plan_request slc_engine_standing_request(const sluice_runtime *rt);
/* Adds what layers want for themselves, in arrays that slc_engine_free_choices frees, whatever this returns.
 * Recomputation and lanes of updates that the request already has stay. Errors: MEMORY. */
sluice_status slc_engine_add_choices(const sluice_runtime *rt, slc_plan_request *request);
void slc_engine_free_choices(slc_plan_request *request);
/* Returns true if this schedule places communication by how long things take. */
bool slc_engine_wants_times(const sluice_runtime *rt, const char *schedule);
/* The least budget that a rank has; 0: none has one. Collective. */
sluice_status slc_engine_least_budget(sluice_runtime *rt, uint64_t *budget_bytes);
/* Gathers every rank's number into *all, which the caller frees. Collective. A rank without memory fails for all,
 * because the others wait for it. */
sluice_status slc_engine_gather_numbers(sluice_runtime *rt, uint64_t mine, uint64_t **all);
/* Finds the first rank whose number is not rank 0's; 0: all have the same. Collective. Errors: as above. */
sluice_status slc_engine_find_other(sluice_runtime *rt, uint64_t mine, int *other);

/* ---- share_plan.c: a plan that all ranks have ---- */
/* Rank 0 makes a plan, all have it. The choices of layers are added to `request`. Collective. Errors: the planner's,
 * the same line on every rank; MEMORY, FORMAT, MISMATCH if a rank could not read it. */
sluice_status slc_engine_share_plan(sluice_runtime *rt, const slc_plan_request *request, slc_plan_answer *answer);
/* Shares a plan as slc_engine_share_plan does: the one that the simulator finds fastest among those that `count`
 * requests give. On rank 0 `below_s` excludes plans of a longer step, and `until_ns` is the time after which nothing
 * more is planned. *which is the number of the request. Errors: as above; BUDGET: no plan is left. */
sluice_status slc_engine_share_best_plan(sluice_runtime *rt, const slc_plan_request *requests, uint32_t count,
                                         double below_s, uint64_t until_ns, slc_plan_answer *answer, uint32_t *which);
/* Shares a plan as slc_engine_share_plan does, with the planner's simple schedule or, if that does not fit, with the
 * request's own. `request` then names the schedule that was used. */
sluice_status slc_engine_share_simple_plan(sluice_runtime *rt, slc_plan_request *request, slc_plan_answer *answer);
/* Checks that every compressed phase has a simple plan as requested. Times are not looked at, and nothing is asked
 * without a budget. Collective. Errors: the planner's, with the phase. */
sluice_status slc_phase_check_plans(sluice_runtime *rt, const slc_plan_request *request);

/* ---- place.c: a plan in the arena ---- */
/* Makes the arena, with addresses for every plan of the job, and places the current plan. */
sluice_status slc_engine_make_arena(sluice_runtime *rt);
/* Claims what the current plan keeps, finds all addresses and makes its programs ready, when nothing else is claimed.
 */
sluice_status slc_engine_place_plan(sluice_runtime *rt);

/* ---- adopt.c: from one plan to another ---- */
struct slc_regrouping; /* regroup.h */
/* Makes the answer's plan the one in force, of which nothing lies in the arena yet. Takes over the measured times that
 * it was made from; NULL: it was made from estimates. */
void slc_engine_begin_plan(sluice_runtime *rt, const slc_plan_answer *answer, slc_times *times);
/* Moves over to the answer's plan, between steps with nothing pending, on all ranks or on none; if that fails before
 * anything has moved, the answer's plan is destroyed and the old one stays. `times` as above. The plan that ran is
 * destroyed. */
sluice_status slc_engine_adopt_plan(sluice_runtime *rt, const slc_plan_answer *answer, slc_times *times);
/* Moves over to a plan of the units that a regrouping has made; the plan that runs is of those before. */
sluice_status slc_engine_adopt_regrouped(sluice_runtime *rt, const slc_plan_answer *answer, slc_times *times,
                                         const struct slc_regrouping *regrouping);
/* Moves over to a plan of this job and phase, between steps with nothing pending; the times that the current plan was
 * made from stay. *left is the plan that ran, the caller's now. If memory for the move is missing on a rank, all of
 * them get MEMORY, answer->plan is destroyed, *left NULL, and the old plan stays; any other failure is the runtime's.
 */
sluice_status slc_engine_change_plan(sluice_runtime *rt, const slc_plan_answer *answer, slc_plan **left);

/* Moves over to the answer's plan, as slc_engine_adopt_plan does, and hands the plan that ran over: *left is the
 * caller's now; NULL: nothing has moved. */
sluice_status slc_engine_swap_plan(sluice_runtime *rt, const slc_plan_answer *answer, slc_times *times,
                                   slc_plan **left);

/* ---- replan.c ---- */
/* The plan to start with. For a schedule that wants measured times it is a simple one if that fits; while times are
 * measured, slots wait for more than they need (step/pass.c), so that nothing runs next to compute whatever the plan.
 * Collective. Errors: the planner's, the same line on every rank. */
sluice_status slc_engine_first_plan(sluice_runtime *rt);
/* Called when the job has come to another phase: makes a plan for the phase and moves over to it, as from commit's plan
 * to the next. Between steps, with nothing pending. A failure ends the runtime, because the old plan is of another job.
 */
sluice_status slc_engine_plan_phase(sluice_runtime *rt);
/* Called when a step has ended. A schedule that wants measured times gets its re-plan here, after a warm-up and at
 * least two measured steps, as soon as replicas are equal; no exchange is forced for it, because plans change no
 * number. If 20 steps under the plan that runs differ from their prediction by more than SLUICE_PLAN_DRIFT, times are
 * measured and a plan is made again, at most every 100 steps; a prediction that has never held does not count as such a
 * time. In a run whose steps draw their layers, this is done instead when their mean depth has moved by 5 % of all
 * layers since that plan. */
sluice_status slc_engine_after_step(sluice_runtime *rt);

/* ---- trials.c: plans are tried in the training itself, because bits allow it ---- */
/* Called when the plan from measured times runs. Has other plans made that the simulator puts close to it, and begins
 * to try them by turns, if the steps that are left can pay for it. Collective. */
sluice_status slc_trials_begin(sluice_runtime *rt);
/* Called when a step of the play-off has ended: takes its time, begins the next turn, and in the end keeps the plan
 * whose steps were the shortest. Collective. */
sluice_status slc_trials_after_step(sluice_runtime *rt);
/* Ends a play-off where it is; the plan that runs stays. Nothing happens if there is none. */
void slc_trials_end(sluice_runtime *rt);

/* ---- phases.c ---- */
/* Called when step number `step` has been made and not skipped: norms for the optimizer, and what its answer asks. */
sluice_status slc_phase_end_step(sluice_runtime *rt, uint64_t step);
/* Called after the optimizer's progress or the number of steps was set from outside: makes a plan for the phase that
 * this is. */
sluice_status slc_phase_follow(sluice_runtime *rt);

/* ---- stage_phases.c: the plans of a pipeline's stage, one for each phase of the optimizer ---- */
/* Hands over the plan of a phase that has it, as an answer of the planner. */
slc_plan_answer slc_stage_take_plan(slc_stage_phase *phase, uint64_t budget_bytes);
/* Makes the step that was predicted with the cuts of this phase that of the plan that runs, in parts as they are on the
 * rank that computes longest. Without measured times nothing is predicted. */
void slc_stage_keep_prediction(sluice_runtime *rt);
/* Moves all ranks of all stages over to the plans that were made at commit for the phase, as slc_engine_plan_phase does
 * for a job without stages. */
sluice_status slc_stage_plan_phase(sluice_runtime *rt);

/* ---- shapes.c: steps of several shapes, each under a plan of its own for what its activations and workspaces take
 * ---- */
/* ARGUMENT for a step's shape that nothing was registered for. */
sluice_status slc_shape_check(const sluice_runtime *rt, uint64_t shape);

/* Returns the length of a step's sequences (sluice_step_options.extent) if the caller has given 0. */
double slc_shape_extent(const sluice_runtime *rt, uint32_t shape);
/* Keeps times that steps of the shape that runs have taken; of a job without shapes nothing. Errors: MEMORY. */
sluice_status slc_shape_note_times(sluice_runtime *rt, const slc_times *times);

/* Moves over to the plan of a shape, between steps. Makes that plan, for sequences of this extent, if there is none, or
 * if the one there was made from estimates or from times at fewer lengths than are known now. extent 0: an evaluation
 * comes, which any plan serves. Collective if the shape is not the one that runs. Does nothing under a compressed
 * optimizer and in a pipeline: there the plan of shape 0 has room for all. Errors: those of the planner and of moving;
 * a failure is the runtime's. */
sluice_status slc_shape_turn_to(sluice_runtime *rt, uint32_t shape, double extent);

/* Destroys the plans that do not run: they are of other units, or were made for another budget or strategy. */
void slc_shapes_forget(sluice_runtime *rt);
/* Frees all that shapes have. */
void slc_shapes_fini(sluice_runtime *rt);
