/* The optimizer decides when a phase ends; here it gets the norms that it asks for, and the next phase its plan.
 * tests/onebit/onebit_engine_test.c covers this file. */
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/model/param_arrays.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/drain.h"

#include <stdlib.h>

/* Adds up the norms of each wanted state in turn, those of all parameters one after the other. */
static sluice_status add_owned(sluice_runtime *rt, uint32_t wanted, int64_t *words)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t s = 0; s < rt->optimizer.state_count; s++)
        for (uint32_t p = 0; !status && wanted >> s & 1 && p < rt->model.param_count; p++, words += SLC_NORM_WORDS) {
            int64_t bins[SLC_NORM_BINS] = {0};
            if (!rt->model.params[p]->frozen && rt->model.params[p]->unit != SLC_NONE)
                status = slc_param_add_owned(rt->model.params[p], 1 + s, bins);
            slc_norm_pack(bins, words);
        }
    return status;
}

static double joined_norm(const sluice_runtime *rt, const int64_t *words, size_t count)
{
    int64_t sum[SLC_NORM_WORDS] = {0}, bins[SLC_NORM_BINS];
    for (int r = 0; r < rt->size; r++)
        for (int w = 0; w < SLC_NORM_WORDS; w++) sum[w] += words[(size_t)r * count + (size_t)w];
    slc_norm_unpack(sum, bins);
    return slc_norm_result(bins);
}

/* norms[s * param_count + p] becomes the norm of the s-th wanted state of parameter p. */
static sluice_status make_norms(sluice_runtime *rt, uint32_t wanted, double *norms)
{
    size_t numbers = (size_t)__builtin_popcount(wanted) * rt->model.param_count, count = numbers * SLC_NORM_WORDS;
    int64_t *own = calloc(count, sizeof *own), *all = calloc(count * (size_t)rt->size, sizeof *all);
    sluice_status status = own && all ? add_owned(rt, wanted, own) : slc_error(SLUICE_ERR_MEMORY, "norms of states");
    if (!status) status = sluice_world_all_gather(rt->world, own, count * sizeof *own, all);
    for (size_t i = 0; !status && i < numbers; i++) norms[i] = joined_norm(rt, all + i * SLC_NORM_WORDS, count);
    free(own);
    free(all);
    return status;
}

static sluice_status end_with_norms(sluice_runtime *rt, uint64_t step, uint32_t wanted, uint32_t *answer)
{
    double *norms = calloc((size_t)SLUICE_OPTIMIZER_STATES_MAX * rt->model.param_count, sizeof *norms), *next = norms;
    const double *of_state[SLUICE_OPTIMIZER_STATES_MAX] = {0};
    if (!norms) return slc_error(SLUICE_ERR_MEMORY, "norms of states");
    for (uint32_t s = 0; s < SLUICE_OPTIMIZER_STATES_MAX; s++) {
        if (!(wanted >> s & 1)) continue;
        of_state[s] = next;
        next += rt->model.param_count;
    }
    sluice_status status = slc_runtime_drain(rt);
    if (!status) status = make_norms(rt, wanted, norms);
    if (!status) *answer = rt->onebit.end_step(rt->onebit.context, step, slc_phase_count_updates(rt), of_state);
    free(norms);
    return status;
}

static sluice_status change_phase(sluice_runtime *rt, uint64_t step)
{
    if (!slc_phase_set(rt, step)) return SLUICE_OK;
    if (rt->rank == 0)
        slc_log(SLC_LOG_INFO, "optimizer %s: from step %llu on %s", rt->optimizer.name, (unsigned long long)step,
                rt->job.compressed ? "compressed" : "not compressed");
    sluice_status status = slc_engine_plan_phase(rt);
    return slc_runtime_fail(rt, slc_error_context(status, "the phase of optimizer %s from step %llu on",
                                                  rt->optimizer.name, (unsigned long long)step));
}

/* Says once that compression begins later than the optimizer's settings say. */
static void tell_wait(sluice_runtime *rt, uint64_t step)
{
    const uint32_t lacks = rt->onebit.waits_for(rt->onebit.context);
    if (lacks == SLC_NONE || rt->compression.waits) return;
    rt->compression.waits = true;
    if (rt->rank == 0)
        slc_log(SLC_LOG_WARN,
                "step %llu: optimizer %s averages whole gradients for longer: parameter \"%s\" has had too few updates "
                "for a variance, because steps have left its layer out",
                (unsigned long long)step, rt->optimizer.name, rt->model.params[lacks]->name);
}

sluice_status slc_phase_end_step(sluice_runtime *rt, uint64_t step)
{
    if (!rt->compression.on) return SLUICE_OK;
    static const double *const none[SLUICE_OPTIMIZER_STATES_MAX];
    uint32_t wanted = rt->onebit.wants_norms(rt->onebit.context, step), answer = 0;
    sluice_status status = SLUICE_OK;
    if (wanted)
        status = end_with_norms(rt, step, wanted, &answer);
    else
        answer = rt->onebit.end_step(rt->onebit.context, step, slc_phase_count_updates(rt), none);
    tell_wait(rt, step);
    if (!status && answer) status = slc_runtime_drain(rt);
    if (!status && answer & SLC_PHASE_CHANGED) status = change_phase(rt, step + 1);
    if (!status && answer & SLC_RESET_ERRORS) status = slc_onebit_reset_errors(rt);
    return slc_runtime_fail(rt, status);
}

sluice_status slc_phase_follow(sluice_runtime *rt)
{
    return rt->compression.on ? change_phase(rt, rt->step + 1) : SLUICE_OK;
}
