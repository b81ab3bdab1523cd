/* The optimizer decides when a phase ends; here its job is made, and a plan of it asked for. */
#include "lib/engine/onebit/phase.h"

#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/replan/replan.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

void slc_job_set_phase(slc_job *job, const slc_compressed_phase *phase)
{
    job->compressed = phase->compressed && job->world > 1;
    job->refreshes = job->compressed && phase->refreshes;
    job->local_arrays = job->compressed ? phase->local_arrays : 0;
}

sluice_status slc_phase_commit(sluice_runtime *rt)
{
    if (!rt->compressed) return SLUICE_OK;
    slc_compressed_parameter *parameters = calloc(rt->param_count, sizeof *parameters);
    if (!parameters) return slc_error(SLUICE_ERR_MEMORY, "%u parameters", rt->param_count);
    for (uint32_t p = 0; p < rt->param_count; p++) {
        const sluice_param *param = rt->params[p];
        parameters[p] = (slc_compressed_parameter){param->count, param->frozen, param->no_decay};
    }
    rt->fuses = rt->onebit.phases[0].fuses;
    sluice_status status = rt->onebit.commit(rt->onebit.context, (uint32_t)rt->size, rt->param_count, parameters);
    free(parameters);
    return status;
}

bool slc_phase_set(sluice_runtime *rt, uint64_t step)
{
    slc_job *job = &rt->job, before = *job;
    slc_compressed_phase phase = rt->onebit.phase(rt->onebit.context, step);
    slc_job_set_phase(job, &phase);
    return job->compressed != before.compressed || job->refreshes != before.refreshes ||
           job->local_arrays != before.local_arrays;
}

sluice_status slc_phase_check_plans(sluice_runtime *rt, const slc_plan_request *request)
{
    const slc_job job = rt->job;
    sluice_status status = SLUICE_OK;
    for (uint32_t p = 1; !status && request->budget_bytes && p < rt->onebit.phase_count; p++) {
        slc_job_set_phase(&rt->job, &rt->onebit.phases[p]);
        if (rt->job.compressed) status = slc_engine_try_plan(rt, request);
        rt->job = job;
    }
    return slc_error_context(status, "the compressed phase of optimizer %s, behind its warm-up", rt->optimizer.name);
}

sluice_status slc_phase_require_equal(const sluice_runtime *rt, const char *call)
{
    if (!rt->replicas_differ) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_ORDER,
        "%s: ranks hold different weights since the last local step of optimizer %s; set `exchange` in the "
        "options of the step before",
        call, rt->optimizer.name);
}

/* A shard's owner updates it alone and everybody gathers that, so strategies that shard the update make replicas equal
 * again; those that update everything everywhere keep what is apart apart. */
void slc_phase_note_replicas(sluice_runtime *rt, slc_step_mode mode)
{
    if (!rt->compressed) return;
    const bool ends_interval = rt->replicas_differ && mode == SLC_STEP_EXCHANGE;
    if (rt->job.compressed) rt->replicas_differ = mode == SLC_STEP_LOCAL;
    for (uint32_t p = 0; p < rt->param_count; p++) {
        sluice_param *param = rt->params[p];
        const slc_strategy strategy = rt->units[param->unit].strategy;
        if (!slc_updates_whole(strategy))
            param->apart = false;
        else if (strategy == SLC_ONEBIT && ends_interval && !param->frozen)
            param->apart |= rt->onebit.exchange_rounds;
    }
}

void slc_phase_join_replicas(sluice_runtime *rt)
{
    rt->replicas_differ = false;
    for (uint32_t p = 0; p < rt->param_count; p++) rt->params[p]->apart = false;
}

bool sluice_runtime_replicas_equal(const sluice_runtime *rt, bool *readable)
{
    bool equal = !rt->replicas_differ;
    for (uint32_t p = 0; equal && p < rt->param_count; p++) equal = !rt->params[p]->apart;
    if (readable) *readable = !rt->replicas_differ;
    return equal;
}

/* ---- Norms over owned parts ---- */

/* Of all trainable parameters, one behind the other, those of each wanted state. */
static sluice_status add_owned(sluice_runtime *rt, uint32_t wanted, int64_t *words)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t s = 0; s < rt->optimizer.state_count; s++)
        for (uint32_t p = 0; !status && wanted >> s & 1 && p < rt->param_count; p++, words += SLC_NORM_WORDS) {
            int64_t bins[SLC_NORM_BINS] = {0};
            if (!rt->params[p]->frozen) status = slc_param_add_owned(rt->params[p], 1 + s, bins);
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

/* norms: of each wanted state, of each parameter. */
static sluice_status make_norms(sluice_runtime *rt, uint32_t wanted, double *norms)
{
    size_t numbers = (size_t)__builtin_popcount(wanted) * rt->param_count, count = numbers * SLC_NORM_WORDS;
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
    double *norms = calloc((size_t)SLUICE_OPTIMIZER_STATES_MAX * rt->param_count, sizeof *norms), *next = norms;
    const double *of_state[SLUICE_OPTIMIZER_STATES_MAX] = {0};
    if (!norms) return slc_error(SLUICE_ERR_MEMORY, "norms of states");
    for (uint32_t s = 0; s < SLUICE_OPTIMIZER_STATES_MAX; s++) {
        if (!(wanted >> s & 1)) continue;
        of_state[s] = next;
        next += rt->param_count;
    }
    sluice_status status = slc_runtime_drain(rt);
    if (!status) status = make_norms(rt, wanted, norms);
    if (!status) *answer = rt->onebit.end_step(rt->onebit.context, step, of_state);
    free(norms);
    return status;
}

/* ---- Changing ---- */

static sluice_status change(sluice_runtime *rt, uint64_t step)
{
    if (!slc_phase_set(rt, step)) return SLUICE_OK;
    if (rt->rank == 0)
        slc_log(SLC_LOG_INFO, "optimizer %s: from step %llu on %s", rt->optimizer.name, (unsigned long long)step,
                rt->job.compressed ? "compressed" : "not compressed");
    sluice_status status = slc_engine_plan_phase(rt);
    return slc_runtime_fail(rt, slc_error_context(status, "the phase of optimizer %s from step %llu on",
                                                  rt->optimizer.name, (unsigned long long)step));
}

sluice_status slc_phase_end_step(sluice_runtime *rt, uint64_t step)
{
    if (!rt->compressed) return SLUICE_OK;
    static const double *const none[SLUICE_OPTIMIZER_STATES_MAX];
    uint32_t wanted = rt->onebit.wants_norms(rt->onebit.context, step), answer = 0;
    sluice_status status = SLUICE_OK;
    if (wanted)
        status = end_with_norms(rt, step, wanted, &answer);
    else
        answer = rt->onebit.end_step(rt->onebit.context, step, none);
    if (!status && answer) status = slc_runtime_drain(rt);
    if (!status && answer & SLC_PHASE_CHANGED) status = change(rt, step + 1);
    if (!status && answer & SLC_RESET_ERRORS) status = slc_onebit_reset_errors(rt);
    return slc_runtime_fail(rt, status);
}

sluice_status slc_phase_follow(sluice_runtime *rt)
{
    return rt->compressed ? change(rt, rt->step + 1) : SLUICE_OK;
}
