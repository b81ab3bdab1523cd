/* A plan that was kept in a file, taken instead of making one. Private to sched. */
#pragma once

#include "lib/plan/request.h"

/* Reads the plan `request->kept` of `job` into answer->plan, which the caller destroys, and holds it against what the
 * request asks and against answer->budget_bytes. Errors: PATH, IO, FORMAT, ARGUMENT, BUDGET, as slc_plan_function says.
 */
sluice_status slc_kept_plan(const slc_job *job, const slc_plan_request *request, slc_plan_answer *answer);

/* Puts units of `job`, each of one layer, into the groups that the units of the plan in the file are made of. If the
 * file has no such unit, or cannot be read, a unit stays alone, and slc_kept_plan says what is wrong. Errors: MEMORY.
 */
sluice_status slc_kept_groups(const slc_job *job, const char *path, uint32_t *group);
