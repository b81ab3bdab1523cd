/* A plan's distance to the bound in words and as JSON. */
#pragma once

#include "bench/plan/words/decisions.h"

#include <stdio.h>

/* Prints what the distance is made of, the largest part first, as the end of a line: ": 2.9 % packing, 0.6 % latency".
 * Parts below 0.05 % of the bound are left out; nothing is printed if all are, or if they are not known. */
void slc_distance_print_parts(FILE *out, const slc_plan_forecast *forecast);

/* Prints lines of advice for a plan that is 1 % or more above its bound, not counting what is unproven. They say how
 * much memory is not used, if the choices or packing are the largest part, and that more time may help, if the search
 * ended for lack of it. */
void slc_distance_print_advice(FILE *out, const slc_shown_plan *shown);

/* Returns {"packing_s": ..., ..., "out_of_time": ...}; null if the parts are not known. NULL: no memory. */
json_t *slc_distance_json(const slc_plan_distance *distance);
