/* The parts that writing and reading a plan share. Private to lib/plan. */
#pragma once

#include "lib/plan/json/json_read.h"
#include "lib/plan/json/json_text.h"
#include "lib/plan/plan.h"

/* Makes the object that a plan's file holds about its job: everything that the plan depends on. NULL: no memory, or a
 * name that is not UTF-8. */
json_t *slc_plan_job_to_json(const slc_job *job);

/* Checks that `held`, the job in a plan's file, is this job. Errors: FORMAT with the path and both values; MEMORY. */
sluice_status slc_plan_job_check(const slc_json_place *at, const slc_job *job, const json_t *held);

/* Writes the members of a plan that are its own, from its schedule on, after an opened object. */
void slc_plan_json_put(slc_json_text *text, const slc_job *job, const slc_plan *plan);

/* Reads the object that holds a plan of this job, and validates it. Errors: FORMAT with the path; MEMORY. */
sluice_status slc_plan_json_get(const slc_json_place *top, const slc_job *job, const json_t *object, slc_plan **out);
