/* partition_test.c covers this file. */
#include "sched/pipeline/partition/chain_sums.h"

#include "lib/base/status.h"

#include <stdlib.h>

sluice_status slc_chain_sums_init(slc_chain_sums *sums, const slc_chain *chain)
{
    const size_t count = (size_t)chain->layers + 1;
    *sums = (slc_chain_sums){.time_s = calloc(count, sizeof *sums->time_s),
                             .fixed = calloc(3 * count, sizeof *sums->fixed)};
    if (!sums->time_s || !sums->fixed) return slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", chain->layers);
    sums->values = sums->fixed + count;
    sums->kept = sums->values + count;
    for (uint32_t l = 0; l < chain->layers; l++) {
        sums->time_s[l + 1] = sums->time_s[l] + chain->layer_s[l];
        sums->fixed[l + 1] = sums->fixed[l] + (chain->fixed_bytes ? chain->fixed_bytes[l] : 0);
        sums->values[l + 1] = sums->values[l] + (chain->value_bytes ? chain->value_bytes[l] : 0);
        sums->kept[l + 1] = sums->kept[l] + (chain->kept_bytes ? chain->kept_bytes[l] : 0);
    }
    return SLUICE_OK;
}

void slc_chain_sums_fini(slc_chain_sums *sums)
{
    free(sums->fixed);
    free(sums->time_s);
    *sums = (slc_chain_sums){0};
}
