/* The job of each phase of a compressed optimizer, and what its steps do to the replicas.
 * tests/checkpoint/onebit_checkpoint_test.c covers this file. */
#include "lib/engine/onebit/phase.h"

#include "lib/base/status.h"
#include "lib/engine/runtime.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

void slc_job_set_phase(slc_job *job, const slc_compressed_phase *phase)
{
    job->compressed = phase->compressed && job->world > 1;
    job->refreshes = job->compressed && phase->refreshes;
    job->local_arrays = job->compressed ? phase->local_arrays : 0;
}

bool slc_job_in_phase(const slc_job *job, const slc_compressed_phase *phase)
{
    slc_job of = *job;
    slc_job_set_phase(&of, phase);
    return job->compressed == of.compressed && job->refreshes == of.refreshes && job->local_arrays == of.local_arrays;
}

static sluice_status make_bads(sluice_runtime *rt)
{
    slc_compression *c = &rt->compression;
    sluice_status status = slc_pinned_create(rt->device, SLC_BADS * sizeof *c->bad, &c->memory);
    if (status) return status;
    c->bad = c->memory.base;
    for (int i = 0; i < SLC_BADS; i++) c->bad[i] = SLC_NONE;
    return SLUICE_OK;
}

sluice_status slc_phase_commit(sluice_runtime *rt)
{
    if (!rt->compression.on) return SLUICE_OK;
    slc_compressed_parameter *parameters = calloc(rt->model.param_count, sizeof *parameters);
    if (!parameters) return slc_error(SLUICE_ERR_MEMORY, "%u parameters", rt->model.param_count);
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        parameters[p] = (slc_compressed_parameter){param->count, param->frozen, param->no_decay};
    }
    rt->compression.fuses = rt->onebit.phases[0].fuses;
    rt->compression.roles = calloc(rt->model.param_count, sizeof *rt->compression.roles);
    rt->compression.updates = calloc(rt->model.param_count, sizeof *rt->compression.updates);
    sluice_status status = rt->compression.roles && rt->compression.updates
                               ? make_bads(rt)
                               : slc_error(SLUICE_ERR_MEMORY, "%u parameters", rt->model.param_count);
    if (!status)
        status = rt->onebit.commit(rt->onebit.context, (uint32_t)rt->replicas, rt->model.param_count, parameters);
    free(parameters);
    return status;
}

void slc_phase_destroy(sluice_runtime *rt)
{
    slc_pinned_destroy(&rt->compression.memory);
    free(rt->compression.roles);
    free(rt->compression.updates);
}

/* Returns the bits of a parameter's role in a step. A parameter that another stage keeps counts as one of a onebit
 * unit, so that all stages count the same intervals of local steps, whichever of them has onebit units. A frozen
 * parameter counts as in no onebit unit: it never moves, so if an exchange left it out, its interval would stay open
 * while replicas are equal, and a checkpoint would keep the open interval. */
static uint8_t role_of(const sluice_runtime *rt, const slc_step_state *step, const sluice_param *param)
{
    if (param->frozen) return slc_left_out_param(step, param) ? SLC_LEFT_OUT : 0;
    if (param->unit == SLC_NONE) return SLC_IN_ONEBIT;
    return (uint8_t)((slc_left_out_param(step, param) ? SLC_LEFT_OUT : 0) |
                     (slc_exchanges(rt->units[param->unit].strategy) ? SLC_IN_ONEBIT : 0));
}

slc_step_mode slc_phase_begin_step(sluice_runtime *rt, const slc_step_state *step, bool exchange_now)
{
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        rt->compression.roles[p] = role_of(rt, step, rt->model.params[p]);
    return rt->onebit.begin_step(rt->onebit.context, step->step, step->learning_rate, exchange_now,
                                 rt->compression.roles);
}

const uint64_t *slc_phase_count_updates(sluice_runtime *rt)
{
    bool alike = true;
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        rt->compression.updates[p] = rt->step - (param->frozen ? 0 : param->missed);
        alike &= !param->missed;
    }
    return alike ? NULL : rt->compression.updates;
}

bool slc_phase_set(sluice_runtime *rt, uint64_t step)
{
    const slc_compressed_phase phase = rt->onebit.phase(rt->onebit.context, step);
    const bool stays = slc_job_in_phase(&rt->job, &phase);
    slc_job_set_phase(&rt->job, &phase);
    return !stays;
}

sluice_status slc_phase_require_equal(const sluice_runtime *rt, const char *call)
{
    if (!rt->compression.replicas_differ) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_ORDER,
        "%s: ranks hold different weights since the last local step of optimizer %s; set `exchange` in the "
        "options of the step before",
        call, rt->optimizer.name);
}

/* Strategies that shard the update make replicas equal again, because a shard's owner updates it alone and everybody
 * gathers that. Strategies that update everything everywhere keep replicas apart that are apart. */
static void note_param(const sluice_runtime *rt, slc_step_mode mode, sluice_param *param)
{
    const bool elsewhere = param->unit == SLC_NONE; /* another stage keeps it, in a onebit unit for all that is known */
    if (!elsewhere && !slc_updates_whole(rt->units[param->unit].strategy)) param->apart = false;
    if (param->frozen || !(elsewhere || slc_exchanges(rt->units[param->unit].strategy))) return;
    param->apart |= !elsewhere && param->moved && mode == SLC_STEP_EXCHANGE && rt->onebit.exchange_rounds;
    param->moved = rt->job.compressed && mode == SLC_STEP_LOCAL;
}

void slc_phase_note_replicas(sluice_runtime *rt, const slc_step_state *step)
{
    if (!rt->compression.on) return;
    rt->compression.in_interval = rt->job.compressed && step->mode == SLC_STEP_LOCAL;
    rt->compression.replicas_differ = false;
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        sluice_param *param = rt->model.params[p];
        if (!slc_left_out_param(step, param)) note_param(rt, step->mode, param);
        rt->compression.replicas_differ |= param->moved;
    }
}

void slc_phase_join_replicas(sluice_runtime *rt)
{
    rt->compression.replicas_differ = rt->compression.in_interval = false;
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        rt->model.params[p]->apart = rt->model.params[p]->moved = false;
}

bool sluice_runtime_replicas_equal(const sluice_runtime *rt, bool *readable)
{
    bool equal = rt && !rt->compression.replicas_differ;
    for (uint32_t p = 0; equal && p < rt->model.param_count; p++) equal = !rt->model.params[p]->apart;
    if (readable) *readable = rt && !rt->compression.replicas_differ;
    return equal;
}
