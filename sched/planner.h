/* Makes a plan that keeps to a user's request (strategy, schedule, budget). The umbrella hands these functions to the
 * engine. */
#pragma once

#include "lib/plan/request.h"

/* Does what slc_plan_function says. A strategy is a name for all units; "random:SEED"; "mixed"; or the path of a JSON
 * file
 *   {"layers": {"h.0": "fsdp", "embed.wte": "sdp", "*": "sdp"}}
 * where "*" means every unit that is not named, and "h.0..h.2" the layers from h.0 to h.2; layers of a fused unit must
 * all have one strategy. `forced` overrides all of these. A plan keeps to the budget if its arena and the memory that
 * the binary reserves are together no larger. Errors: those of slc_plan_function; PATH, IO, FORMAT (the file: its name,
 * line and key). */
sluice_status slc_plan_for_budget(const slc_job *job, const slc_plan_request *request, slc_plan_answer *answer);

/* Reads strategies that are forced, as "h.3=fsdp,h.4..h.6=dp", for slc_plan_request.forced: names are those of a
 * strategy file, and what is not named becomes SLC_STRATEGIES in out [units]. Errors: ARGUMENT (no such layer or
 * strategy, one that the layer cannot have, a layer named twice), MEMORY. */
sluice_status slc_strategies_from_list(const slc_job *job, const char *list, slc_strategy *out);

/* Does what slc_fuse_function says (planner/fuse.c). */
sluice_status slc_fuse_units(const slc_job *job, const slc_fuse_request *request, uint32_t *group);

/* Finds the smallest budget that slc_plan_for_budget can keep to, as its error for one that is too small says it:
 * `forced` and `recompute` are kept, all else is free. Errors: MEMORY, INTERRUPTED. */
sluice_status slc_plan_smallest_budget(const slc_job *job, const slc_plan_request *request, uint64_t *budget_bytes);
