/* Norms and maxima over whole parameters: every rank measures the parts that it owns while gradients are reduced, the
 * sums travel exactly in the step's agreement, so that they have the same bits for any strategy and order. Ranks add
 * words up; so of a maximum each rank has a word of its own. */
#include "lib/engine/runtime.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static uint32_t each(const sluice_runtime *rt)
{
    return rt->optimizer.norm_count ? rt->optimizer.norm_count + rt->optimizer.maximum_count : 0;
}

/* Is number i of all, those of a parameter behind each other, a norm? */
static bool is_norm(const sluice_runtime *rt, uint32_t i)
{
    return i % each(rt) < rt->optimizer.norm_count;
}

sluice_status slc_norms_create(sluice_runtime *rt)
{
    for (uint32_t p = 0; p < rt->param_count; p++) {
        if (rt->params[p]->frozen) continue;
        rt->params[p]->norm = rt->norm_count;
        rt->norm_count += each(rt);
    }
    if (!rt->norm_count) return SLUICE_OK;
    for (uint32_t i = 0; i < rt->norm_count; i++)
        rt->norm_words += is_norm(rt, i) ? SLC_NORM_WORDS : (uint32_t)rt->size;
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
        if (is_norm(rt, i)) {
            slc_norm_pack(rt->norm_bins[i], words);
            words += SLC_NORM_WORDS;
        } else {
            words[rt->rank] = rt->norm_bins[i][0];
            words += rt->size;
        }
        memset(rt->norm_bins[i], 0, sizeof rt->norm_bins[i]);
    }
}

static double largest(const int64_t *words, int count)
{
    int64_t most = 0;
    for (int r = 0; r < count; r++)
        if (words[r] > most) most = words[r];
    double value;
    memcpy(&value, &most, sizeof value);
    return value;
}

static void tell_optimizer(const sluice_runtime *rt, const slc_step_state *step)
{
    for (uint32_t p = 0; p < rt->param_count; p++) {
        const sluice_param *param = rt->params[p];
        if (param->frozen || rt->units[param->unit].strategy == SLC_ONEBIT) continue;
        rt->optimizer.agreed(p, step->step, step->norms + param->norm, rt->optimizer.context);
    }
}

void slc_norms_unpack(const sluice_runtime *rt, const int64_t *words, slc_step_state *step)
{
    for (uint32_t i = 0; i < rt->norm_count; i++) {
        if (is_norm(rt, i)) {
            int64_t bins[SLC_NORM_BINS];
            slc_norm_unpack(words, bins);
            step->norms[i] = slc_norm_result(bins);
            words += SLC_NORM_WORDS;
        } else {
            step->norms[i] = largest(words, rt->size);
            words += rt->size;
        }
    }
    if (rt->norm_count && rt->optimizer.agreed && !step->non_finite) tell_optimizer(rt, step);
}
