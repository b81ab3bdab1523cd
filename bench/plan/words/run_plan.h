/* The plan that a runtime runs, as `sluice train` shows and keeps it. */
#pragma once

#include <jansson.h>
#include <sluice/plan.h>
#include <stdio.h>

typedef struct {
    char *plan, *profile; /* what --plan-out and --profile-out write */
    json_t *json;         /* the decisions (docs/formats.md) */
} slc_run_plan;

/* Takes the plan from the runtime and prints its table. `model` names the profile; `kept`: the file that the plan was
 * read from; NULL: the planner made it. *taken holds nothing after an error; the caller frees it. Errors: MEMORY, those
 * of sluice_runtime_plan_json. */
sluice_status slc_run_plan_show(sluice_runtime *rt, const char *model, const char *kept, FILE *out,
                                slc_run_plan *taken);
void slc_run_plan_free(slc_run_plan *taken); /* an empty one is allowed */
