/* Prints a plan for people to read. */
#pragma once

#include "bench/plan/words/decisions.h"

#include <stdio.h>

/* Prints a line for each group of layers with equal decisions: the strategy, whether they recompute, what a rank keeps
 * for good, what that saves and costs. Then it prints memory, step, bound and schedule. At most some 15 lines. Errors:
 * MEMORY. */
sluice_status slc_plan_table(FILE *out, const slc_shown_plan *shown);
