/* The memory picture of a plan: memory over the step by category, with its peak and the budget, above memory by layer
 * at the peak. Drawn by gnuplot. */
#pragma once

#include "lib/plan/profile.h"
#include "lib/plan/plan.h"

#include <stdio.h>

/* Simulates a step, draws the picture into the file `path` (.svg or .png), and prints one line about the peak. `budget`
 * 0: none. Errors: UNSUPPORTED (no gnuplot), PATH, IO, MEMORY; ARGUMENT (all times are 0: there is no step to show). */
sluice_status slc_memory_picture_draw(FILE *out, const slc_profile *profile, const slc_plan *plan,
                                      uint64_t budget_bytes, const char *path);
