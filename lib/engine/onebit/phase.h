/* The phases of a compressed optimizer: each has a job of its own (its plans: replan/replan.h). Under another optimizer
 * these functions do nothing. Everything is the same on every rank. Private to lib/engine. */
#pragma once

#include "lib/engine/step_state.h"
#include "lib/optim/compressed.h"
#include "lib/plan/job.h"

#include <sluice/runtime.h>

/* Makes a job that of a phase. With one rank nothing is ever compressed. */
void slc_job_set_phase(slc_job *job, const slc_compressed_phase *phase);
/* Returns true if the job is that of this phase. */
bool slc_job_in_phase(const slc_job *job, const slc_compressed_phase *phase);
/* Tells the optimizer which parameters there are. Errors: MEMORY. */
sluice_status slc_phase_commit(sluice_runtime *rt);
void slc_phase_destroy(sluice_runtime *rt);
/* Makes the runtime's job that of the phase of steps from `step` on. True: that has changed it. */
bool slc_phase_set(sluice_runtime *rt, uint64_t step);

/* Begins a step, whose left-out layers are known, and returns its mode. exchange_now: it may not be local. */
slc_step_mode slc_phase_begin_step(sluice_runtime *rt, const slc_step_state *step, bool exchange_now);
/* Tells how many updates each parameter has had, valid until the next call; NULL: as many as there were steps. */
const uint64_t *slc_phase_count_updates(sluice_runtime *rt);

/* ORDER while onebit units differ between ranks after local steps, so that nobody can read them. */
sluice_status slc_phase_require_equal(const sluice_runtime *rt, const char *call);
/* Called when a step has been made and not skipped: notes what it does to the replicas. */
void slc_phase_note_replicas(sluice_runtime *rt, const slc_step_state *step);
/* Called when all values have come from one place: replicas are equal again. */
void slc_phase_join_replicas(sluice_runtime *rt);
