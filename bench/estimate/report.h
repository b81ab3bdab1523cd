/* An estimate for people and as JSON. */
#pragma once

#include "bench/estimate/answers.h"

#include <jansson.h>
#include <stdio.h>

/* Prints the model, where times come from, the smallest budget, the strategies and the budgets. */
void slc_estimate_print(FILE *out, const slc_survey *survey, const slc_answers *answers);

/* Returns the estimate as a new JSON object (docs/formats.md). `planned` is the plan under the user's budget; NULL:
 * none was given. NULL: no memory. */
json_t *slc_estimate_json(const slc_survey *survey, const slc_answers *answers, const slc_budget_plan *planned);
