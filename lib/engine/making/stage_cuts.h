/* The cuts of a pipeline, and what this rank's stage is in each phase of the optimizer. Private to lib/engine/making.
 */
#pragma once

#include <sluice/runtime.h>

/* Fills stage.phases: rank 0 cuts the job, for all phases alike, and each rank makes the job and the plan of its own
 * stage in each of them; stage.now becomes that of the runtime's job. Every phase keeps the budget of a rank.
 * Collective. Errors: those of slc_planner's cut and stage; ARGUMENT (nothing says who reads an activation that crosses
 * a cut); BUDGET (no cuts serve all phases); MISMATCH (ranks make other plans); MEMORY. */
sluice_status slc_stage_cut(sluice_runtime *rt, uint64_t budget_bytes);
/* Frees all phases. */
void slc_stage_phases_free(sluice_runtime *rt);
