/* The choice of the layers that share a unit. It is made at commit from estimated times, and again by a re-plan from
 * measured ones. Numerics are those of parameters, so units change no bit of the weights; if an optimizer exchanges
 * the tensors of a unit together, compressed, they stay as they are. Private to lib/engine. */
#pragma once

#include "lib/engine/replan/transition.h"
#include "lib/engine/units/units.h"
#include "lib/plan/request.h"

#include <sluice/runtime.h>

/* ---- fuse.c: the planner is asked ---- */
/* Finds the bytes of a fused unit (0: off; SLC_FUSE_AUTO) in a configuration, NULL: the setting. Errors: ARGUMENT. */
sluice_status slc_engine_fuse_bytes(const char *fuse, uint64_t *bytes);
/* Fills `last` (slc_units_make) from the planner's answer about the job as it is, with a unit for each layer. `plan` is
 * the request that will follow; its times count on rank 0, which decides. Collective, equal on all ranks. Errors:
 * MEMORY; the planner's. */
sluice_status slc_engine_fuse_layers(sluice_runtime *rt, const slc_plan_request *plan, uint32_t *last);

/* ---- regroup.c: other units, and the way back ---- */
/* While the plan that runs is still of the units before, the runtime has the new ones. */
typedef struct slc_regrouping {
    bool on; /* there are other units; false: the planner wants those that there are */
    slc_unit_set before;
    slc_job job_before;
    uint32_t *same; /* as in slc_unit_origins */
    slc_unit_piece *pieces;
    size_t piece_count;
} slc_regrouping;

/* Returns true if a re-plan for this request may choose other units; the answer is the same on every rank. */
bool slc_regroup_allowed(const sluice_runtime *rt, const slc_plan_request *request);
/* Asks the planner which units the layers shall have by the request's times, and makes them if they are others.
 * Between steps with nothing pending, collective. slc_regroup_undo or slc_regroup_keep ends it, unless it fails. After
 * an error the units are those of before. Errors: the planner's, the same on every rank; a rank without memory fails
 * for all. */
sluice_status slc_regroup_begin(sluice_runtime *rt, const slc_plan_request *request, slc_regrouping *out);
/* Makes the units of before the runtime's again. */
void slc_regroup_undo(sluice_runtime *rt, slc_regrouping *regrouping);
/* Destroys the units of before; a regrouping that has none is empty already. */
void slc_regroup_keep(const sluice_runtime *rt, slc_regrouping *regrouping);

/* ---- collect.c ---- */
/* Brings together what this rank owns of the arrays that the transition lists, while the plan before still lies in the
 * arena, all of which the caller has claimed. Collective. */
sluice_status slc_collect_units(sluice_runtime *rt, const slc_regrouping *regrouping, const slc_transition *transition);
