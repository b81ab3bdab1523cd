/* The slot model in a build without its solver: its functions say so. Code that plans asks slc_slot_model_solver first.
 */
#include "ilp/slot_model.h"

#include "lib/base/status.h"

#include <stdlib.h>

const char *slc_slot_model_solver(void)
{
    return NULL;
}

static sluice_status refuse(void)
{
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "slot model: this build has no GLPK to solve it; install libglpk-dev and build with "
                     "-DSLUICE_GLPK=ON");
}

sluice_status slc_slot_model_solve(const slc_slot_request *request, slc_slot_solution *out)
{
    (void)request;
    *out = (slc_slot_solution){0};
    return refuse();
}

sluice_status slc_slot_model_bound(const slc_slot_request *request, double *relaxed_s, double *bound_s)
{
    (void)request;
    *relaxed_s = *bound_s = 0;
    return refuse();
}

sluice_status slc_slot_model_least_memory(const slc_slot_request *request, uint64_t *limit, slc_slot_solution *out)
{
    (void)request, (void)limit;
    *out = (slc_slot_solution){0};
    return refuse();
}
