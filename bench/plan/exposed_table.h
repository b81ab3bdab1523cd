/* Where compute waits, as a table for people: equal layers ("h.0", "h.1", ...) are one group "h.*". */
#ifndef SLC_BENCH_EXPOSED_TABLE_H
#define SLC_BENCH_EXPOSED_TABLE_H

#include "sched/simulate/exposed.h"

#include <stdio.h>

/* A line for each group of slots and what they wait for, the largest first; the smallest beyond `most` lines are one.
 * Errors: MEMORY. */
sluice_status slc_exposed_table(FILE *out, const slc_job *job, const slc_plan *plan, const slc_exposure *exposures,
                                uint32_t count, double step_s, uint32_t most);

#endif
