/* The slowest rank's figures. */
#include "lib/engine/measure.h"

#include "lib/base/status.h"

#include <stdlib.h>

sluice_status slc_measure_slowest(sluice_runtime *rt, double *values, size_t count)
{
    if (!count || rt->size == 1) return SLUICE_OK;
    double *all = malloc((size_t)rt->size * count * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "figures of %d ranks", rt->size);
    sluice_status status = sluice_world_all_gather(rt->world, values, count * sizeof *values, all);
    for (size_t i = 0; !status && i < (size_t)rt->size * count; i++)
        if (all[i] > values[i % count]) values[i % count] = all[i];
    free(all);
    return status;
}
