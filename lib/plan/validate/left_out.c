/* Steps may leave layers out (lib/plan/left_out.h). An item that is left out keeps its place in the order, waits for
 * all that it waits for, claims and releases its memory, and moves nothing: to the rest of the plan it takes no time.
 * All that the validator shows of order, memory and tickets holds for any timing, so it holds for every subset of
 * layers that is left out. What remains to be shown is that no layer which runs needs a unit that is left out. If more
 * layers are left out, no fewer units are; so it is enough to leave out, for each layer that uses a unit, all other
 * layers. tests/plan/validate_left_out_test.c covers this file. */
#include "lib/plan/validate/parts.h"

#include "lib/base/status.h"
#include "lib/plan/left_out.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_validate_left_out(const slc_job *job)
{
    bool *left_out = malloc((size_t)job->layer_count + 1);
    sluice_status status = left_out ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "validator");
    if (!status) memset(left_out, true, job->layer_count);
    for (uint32_t u = 0; !status && u < job->unit_count; u++)
        for (uint32_t n = 0; !status && n < job->units[u].use_count; n++) {
            const uint32_t layer = job->units[u].uses[n].layer;
            left_out[layer] = false;
            if (slc_unit_left_out(&job->units[u], left_out))
                status = slc_error(SLUICE_ERR_FORMAT, "invalid job: a step that runs layer %s leaves unit %s out",
                                   job->layers[layer], job->units[u].name);
            left_out[layer] = true;
        }
    free(left_out);
    return status;
}
