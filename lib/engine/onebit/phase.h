/* The phases of a compressed optimizer: each has a job and plans of its own, changed at a step boundary. Private to
 * lib/engine; everything does nothing under another optimizer. Collective: the same on every rank. */
#ifndef SLC_ENGINE_PHASE_H
#define SLC_ENGINE_PHASE_H

#include "lib/engine/runtime.h"
#include "lib/plan/request.h"

/* What a phase changes of a job. With one rank nothing is ever compressed. */
void slc_job_set_phase(slc_job *job, const slc_compressed_phase *phase);

/* Tells the optimizer which parameters there are. */
sluice_status slc_phase_commit(sluice_runtime *rt);
/* The runtime's job is that of the phase of steps from `step` on. True if that changes it. */
bool slc_phase_set(sluice_runtime *rt, uint64_t step);

/* Does every compressed phase have a plan as requested (times are not looked at)? Not asked without a budget. Errors:
 * the planner's, with the phase. */
sluice_status slc_phase_check_plans(sluice_runtime *rt, const slc_plan_request *request);

/* When step number `step` has been made and not been skipped: norms for the optimizer, and what it answers. */
sluice_status slc_phase_end_step(sluice_runtime *rt, uint64_t step);

/* After the optimizer's progress or the number of steps was set from outside: a plan for the phase that this is. */
sluice_status slc_phase_follow(sluice_runtime *rt);

/* ORDER while onebit units differ between ranks by local steps: whoever wants to read them comes too early. */
sluice_status slc_phase_require_equal(const sluice_runtime *rt, const char *call);

/* When a step has been made and not been skipped: what it does to the replicas. */
void slc_phase_note_replicas(sluice_runtime *rt, slc_step_mode mode);
/* All values come from one place: replicas are equal again. */
void slc_phase_join_replicas(sluice_runtime *rt);

#endif
