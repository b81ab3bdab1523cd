/* A rank's stage of a pipeline at commit. Every rank registers all layers and makes the job of all of them; then rank 0
 * cuts it, and each rank keeps its own stage. Private to lib/engine.
 *
 * A layer of another stage has no index any more, and a parameter there no unit: both are SLC_NONE. */
#pragma once

#include <sluice/runtime.h>

/* Says what of the runtime's settings does not go with a pipeline, and makes the group of a stage's R replicas, so that
 * the job is one of R ranks. Rank stage * R + replica holds a stage. Collective. Does nothing where there is no
 * pipeline. Errors: ARGUMENT, UNSUPPORTED, those of slc_comm_group_create. */
sluice_status slc_stage_begin(sluice_runtime *rt);

/* Cuts the job, turns it into that of this rank's stage, and makes the plan of this stage the runtime's first plan.
 * Collective. Errors: those of slc_planner's cut and stage; ARGUMENT (nothing says who reads an activation that crosses
 * a cut); MISMATCH (ranks make other plans); MEMORY. */
sluice_status slc_stage_make(sluice_runtime *rt);

/* Opens the channels, once the arena is attached. Collective. Does nothing where there is no pipeline. */
sluice_status slc_stage_open(sluice_runtime *rt);

/* Closes channels and group, before the arena is detached. */
void slc_stage_close(sluice_runtime *rt);
/* Makes the runtime's job, units and layers those of the whole model again, and frees the rest. */
void slc_stage_destroy(sluice_runtime *rt);
