/* Making plans and changing them at a step boundary. Private to lib/engine. */
#ifndef SLC_ENGINE_REPLAN_H
#define SLC_ENGINE_REPLAN_H

#include "lib/engine/runtime.h"
#include "lib/plan/request.h"

/* Does this schedule place communication by how long things take? */
bool slc_schedule_wants_times(const char *schedule);

/* Rank 0 makes a plan, all have it. `request` without what layers want for themselves: that is filled in. Collective.
 * Errors: the planner's, the same line on every rank; MEMORY, FORMAT, MISMATCH where a rank could not read it. */
sluice_status slc_engine_share_plan(sluice_runtime *rt, const slc_plan_request *request, slc_plan_answer *answer);

/* What layers want for themselves, in arrays that slc_engine_free_choices frees, whatever this returns. Errors: MEMORY.
 */
sluice_status slc_engine_add_choices(const sluice_runtime *rt, slc_plan_request *request);
void slc_engine_free_choices(slc_plan_request *request);

/* What the configuration asks for, with the least of the ranks' budgets. Collective. */
sluice_status slc_engine_first_request(sluice_runtime *rt, slc_plan_request *request);

/* The plan to start with. For a schedule that wants measured times it is the serial one where that fits; while times
 * are measured slots wait for more than they need (pass.c), so that nothing runs beside compute whatever the plan.
 * Collective. Errors: the planner's, the same line on every rank. */
sluice_status slc_engine_first_plan(sluice_runtime *rt);

/* What was asked for last. */
slc_plan_request slc_engine_standing_request(const sluice_runtime *rt);

/* Is there a serial plan of the job as requested, or where that does not fit one of the schedule's own? Collective.
 * Errors: the planner's. */
sluice_status slc_engine_try_plan(sluice_runtime *rt, const slc_plan_request *request);

/* The job has come to another phase: plans for it and moves over, as from commit's plan to the next. Between steps,
 * with nothing pending. A failure is not survived: the old plan is of another job. */
sluice_status slc_engine_plan_phase(sluice_runtime *rt);

/* Called when a step has ended: after a warm-up and at least two measured steps, the one re-plan that such a schedule
 * gets, as soon as replicas are equal; it forces no exchange, for plans change no number. */
sluice_status slc_engine_after_step(sluice_runtime *rt);

#endif
