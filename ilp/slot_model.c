/* The slot model. */
#include "ilp/slot_model.h"

#include <stdlib.h>

void slc_slot_solution_fini(slc_slot_solution *solution)
{
    free(solution->strategies);
    free(solution->recompute);
    free(solution->flows);
    *solution = (slc_slot_solution){0};
}
