/* Prints a plan for people to read. */
#ifndef SLC_BENCH_PLAN_TABLE_H
#define SLC_BENCH_PLAN_TABLE_H

#include "lib/plan/request.h"

#include <stdio.h>

/* Prints a line for each group of neighbouring units with the same size and choice: the choice, what it keeps on a
 * rank, and what the other choice would cost or save. Then it prints memory, step and bound. */
void slc_plan_table(FILE *out, const slc_profile *profile, const slc_plan_answer *answer);

/* Write "157.6 MB" or "1.20 ms": three digits and a unit. `text` has room for 24; it is returned. */
char *slc_plan_bytes(double bytes, char *text);
char *slc_plan_seconds(double s, char *text);

#endif
