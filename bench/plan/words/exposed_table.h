/* A table, for people, of where compute waits. Equal layers ("h.0", "h.1", ...) form one group "h.*". */
#pragma once

#include "sched/simulate/exposed.h"

#include <stdio.h>

/* Prints a line for each group of slots and the operations that they wait for, the longest wait first; the shortest
 * ones beyond `most` lines share one line. Errors: MEMORY. */
sluice_status slc_exposed_table(FILE *out, const slc_job *job, const slc_plan *plan, const slc_exposure *exposures,
                                uint32_t count, double step_s, uint32_t most);
