/* Norms and maxima over whole parameters. Every rank measures the parts that it owns while gradients are reduced, and
 * the sums travel exactly in the step's agreement, so that they have the same bits for any strategy and order. Ranks
 * add words up, so each rank has a word of its own in a maximum. tests/onebit/onebit_engine_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/left_out.h"
#include "lib/engine/step/agreement.h"
#include "lib/engine/step/words.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>
#include <string.h>

static uint32_t norms_of_param(const sluice_runtime *rt)
{
    return rt->optimizer.norm_count ? rt->optimizer.norm_count + rt->optimizer.maximum_count : 0;
}

/* Returns true if number i is a norm. The numbers of a parameter follow each other, norms first, then maxima. */
static bool is_norm(const sluice_runtime *rt, uint32_t i)
{
    return i % norms_of_param(rt) < rt->optimizer.norm_count;
}

sluice_status slc_norms_create(sluice_runtime *rt)
{
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        if (rt->model.params[p]->frozen) continue;
        rt->model.params[p]->norm = rt->agreement.norm_count;
        rt->agreement.norm_count += norms_of_param(rt);
    }
    if (rt->agreement.norm_count && rt->onebit.agreed) {
        rt->agreement.agreed = calloc(rt->model.param_count, sizeof *rt->agreement.agreed);
        if (!rt->agreement.agreed) return slc_error(SLUICE_ERR_MEMORY, "norms of %u parameters", rt->model.param_count);
    }
    if (slc_device_runs_ahead(rt->device)) rt->agreement.norm_words = (uint32_t)slc_pass_words_room(rt);
    if (!rt->agreement.norm_count || slc_device_runs_ahead(rt->device)) return SLUICE_OK;
    for (uint32_t i = 0; i < rt->agreement.norm_count; i++)
        rt->agreement.norm_words += is_norm(rt, i) ? SLC_NORM_WORDS : (uint32_t)rt->size;
    rt->agreement.norm_bins = calloc(rt->agreement.norm_count, sizeof *rt->agreement.norm_bins);
    for (int i = 0; i < 2; i++) rt->steps[i].norms = calloc(rt->agreement.norm_count, sizeof *rt->steps[i].norms);
    return rt->agreement.norm_bins && rt->steps[0].norms && rt->steps[1].norms
               ? SLUICE_OK
               : slc_error(SLUICE_ERR_MEMORY, "norms of %u parameters", rt->model.param_count);
}

void slc_norms_destroy(sluice_runtime *rt)
{
    free(rt->agreement.norm_bins);
    free(rt->agreement.agreed);
    slc_pinned_destroy(&rt->agreement.seen);
    for (int i = 0; i < 2; i++) free(rt->steps[i].norms);
}

void slc_norms_pack(sluice_runtime *rt, int64_t *words)
{
    for (uint32_t i = 0; i < rt->agreement.norm_count; i++) {
        if (is_norm(rt, i)) {
            slc_norm_pack(rt->agreement.norm_bins[i], words);
            words += SLC_NORM_WORDS;
        } else {
            words[rt->rank] = rt->agreement.norm_bins[i][0];
            words += rt->size;
        }
        memset(rt->agreement.norm_bins[i], 0, sizeof rt->agreement.norm_bins[i]);
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

/* Tells the program's own optimizer the norms, one parameter at a time. */
static void tell_program(const sluice_runtime *rt, const slc_step_state *step, const double *norms)
{
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        if (!param->frozen && !slc_left_out_param(step, param))
            rt->optimizer.agreed(p, step->updates[p], norms + param->norm, rt->optimizer.context);
    }
}

sluice_status slc_norms_tell(const sluice_runtime *rt, const slc_step_state *step, double *norms)
{
    uint32_t count = 0;
    if (rt->agreement.norm_count && rt->optimizer.agreed) tell_program(rt, step, norms);
    if (!rt->agreement.agreed) return SLUICE_OK;
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        if (param->frozen || param->unit == SLC_NONE || slc_left_out_param(step, param) ||
            slc_exchanges(rt->units[param->unit].strategy))
            continue;
        const sluice_step_words *words =
            step->ahead && rt->config.nan == SLUICE_NAN_SKIP ? &step->ahead->words->told : NULL;
        rt->agreement.agreed[count++] = (slc_agreed){p, norms + param->norm, words};
    }
    return rt->onebit.agreed(rt->onebit.context, step->step, count, rt->agreement.agreed);
}

void slc_norms_unpack(const sluice_runtime *rt, const int64_t *words, slc_step_state *step)
{
    for (uint32_t i = 0; i < rt->agreement.norm_count; i++) {
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
}

double slc_own_norm(const slc_step_state *step)
{
    return slc_norm_result(step->own_bins) * step->own_scale;
}
