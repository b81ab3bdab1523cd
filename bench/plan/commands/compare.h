/* `sluice plan --compare` and `--force`: what is different between two plans. */
#pragma once

#include "bench/plan/commands/files.h"

#include <jansson.h>
#include <stdio.h>

/* Prints what changes from `plans[0]` to `plans[1]`, and if `json` is not NULL adds it to that object as "comparison".
 * Errors: MEMORY, FORMAT. */
sluice_status slc_compare_plans(FILE *out, const slc_profile *profile, const slc_plan *const plans[2],
                                const char *const names[2], json_t *json);

/* Reads the profile and the plan of `files`, and the plan in the file `second`, and compares them. `json`: the file for
 * the result; NULL: none. Errors: those of reading, with the file and the place in it; PATH, IO; MEMORY. */
sluice_status slc_compare_files(slc_plan_files *files, const char *second, const char *json);
