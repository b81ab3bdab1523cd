/* A budget as a user types it, as 900MiB or 60%. */
#pragma once

#include "lib/plan/profile.h"

/* Reads a budget. A percentage is a share of what dp with the serial schedule needs for the job, as for `sluice plan`.
 * *bytes is 0 if `text` is NULL. Errors, which name --budget: ARGUMENT; those of planning. */
sluice_status slc_plan_read_budget(const slc_job *job, const char *text, uint64_t *bytes);
