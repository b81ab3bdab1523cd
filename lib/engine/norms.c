/* Norms over whole parameters: every rank measures the parts that it owns while gradients are reduced, the sums travel
 * exactly in the step's agreement, so that they have the same bits for any strategy and order. */
#include "lib/engine/runtime.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_norms_create(sluice_runtime *rt)
{
    uint32_t each = rt->optimizer.norm_count;
    for (uint32_t p = 0; p < rt->param_count; p++) {
        if (rt->params[p]->frozen) continue;
        rt->params[p]->norm = rt->norm_count;
        rt->norm_count += each;
    }
    if (!rt->norm_count) return SLUICE_OK;
    rt->norm_bins = calloc(rt->norm_count, sizeof *rt->norm_bins);
    for (int i = 0; i < 2; i++) rt->steps[i].norms = calloc(rt->norm_count, sizeof *rt->steps[i].norms);
    return rt->norm_bins && rt->steps[0].norms && rt->steps[1].norms
               ? SLUICE_OK
               : slc_error(SLUICE_ERR_MEMORY, "norms of %u parameters", rt->param_count);
}

void slc_norms_destroy(sluice_runtime *rt)
{
    free(rt->norm_bins);
    for (int i = 0; i < 2; i++) free(rt->steps[i].norms);
}

void slc_norms_pack(sluice_runtime *rt, int64_t *words)
{
    for (uint32_t i = 0; i < rt->norm_count; i++) {
        slc_norm_pack(rt->norm_bins[i], words + (size_t)i * SLC_NORM_WORDS);
        memset(rt->norm_bins[i], 0, sizeof rt->norm_bins[i]);
    }
}

void slc_norms_unpack(const sluice_runtime *rt, const int64_t *words, slc_step_state *step)
{
    for (uint32_t i = 0; i < rt->norm_count; i++) {
        int64_t bins[SLC_NORM_BINS];
        slc_norm_unpack(words + (size_t)i * SLC_NORM_WORDS, bins);
        step->norms[i] = slc_norm_result(bins);
    }
}
