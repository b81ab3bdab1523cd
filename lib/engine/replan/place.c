/* Puts a plan's buffers into the arena: the claims that stay, and the addresses that everybody uses.
 * tests/engine/replan_test.c covers this file. */
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/comm/groups.h"
#include "lib/engine/check/check.h"
#include "lib/engine/measure/rss.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/rows/look_up.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/pass.h"
#include "lib/engine/step/stage_rows.h"
#include "lib/engine/step/words.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

static sluice_status locate_unit(sluice_runtime *rt, uint32_t u)
{
    slc_unit_state *unit = &rt->units[u];
    unit->strategy = rt->current.plan->strategies[u];
    unit->dtype = rt->job.units[u].dtype;
    unit->gradient_dtype = slc_gradient_dtype(&rt->job, &rt->job.units[u]);
    unit->whole_sum = slc_operations_of(&rt->job, &rt->job.units[u], unit->strategy).whole_sum;
    unit->value = slc_engine_buffer(rt, SLC_BUFFER_VALUE, u, 0);
    unit->shard = slc_engine_buffer(rt, SLC_BUFFER_VALUE_SHARD, u, 0);
    unit->gradient = slc_engine_buffer(rt, SLC_BUFFER_GRADIENT, u, 0);
    unit->reduced = slc_engine_buffer(rt, SLC_BUFFER_REDUCED, u, 0);
    unit->reduced_dtype = unit->reduced ? slc_reduced_dtype(&rt->job, &rt->job.units[u]) : unit->gradient_dtype;
    unit->master = slc_engine_buffer(rt, SLC_BUFFER_MASTER, u, 0);
    for (uint32_t s = 0; s < rt->optimizer.state_count; s++)
        unit->state[s] = slc_engine_buffer(rt, SLC_BUFFER_STATE, u, s);
    const uint32_t buffers = slc_gathered_buffers(&rt->job, &rt->job.units[u]);
    if (!unit->gathered) unit->gathered = calloc(buffers + (size_t)1, sizeof *unit->gathered);
    if (!unit->gathered) return slc_error(SLUICE_ERR_MEMORY, "unit \"%s\"", rt->job.units[u].name);
    for (uint32_t n = 0; n < buffers; n++) unit->gathered[n] = slc_engine_buffer(rt, SLC_BUFFER_GATHERED, u, n);
    if (unit->look_up) slc_look_up_locate(rt, u);
    if (slc_exchanges(unit->strategy) && unit->onebit) slc_onebit_locate(rt, u); /* a frozen unit is as dp's */
    return SLUICE_OK;
}

static sluice_status locate(sluice_runtime *rt)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t u = 0; !status && u < rt->job.unit_count; u++) status = locate_unit(rt, u);
    for (uint32_t i = 0; i < rt->job.activation_count; i++) {
        void *place = slc_engine_buffer(rt, SLC_BUFFER_ACTIVATION, SLC_NONE, i);
        if (slc_is_stage(&rt->stage))
            rt->stage.places[i] = place;
        else
            rt->model.activations[i]->data = place;
    }
    for (uint32_t s = 0; s < slc_job_slots(&rt->job); s++)
        if (rt->regions[s].sizes.bytes)
            rt->regions[s].data = slc_engine_buffer(rt, SLC_BUFFER_WORKSPACE, SLC_NONE, rt->regions[s].workspace);
    for (uint32_t i = 0; i < rt->current.plan->train.item_count; i++)
        if (rt->current.plan->train.items[i].kind == SLC_ITEM_AGREE) rt->agreement.item = i;
    rt->agreement.words =
        slc_is_stage(&rt->stage) ? rt->stage.words : slc_engine_buffer(rt, SLC_BUFFER_AGREEMENT, SLC_NONE, 0);
    rt->memory.staging = slc_engine_buffer(rt, SLC_BUFFER_STAGING, SLC_NONE, 0);
    slc_stage_rows_locate(rt);
    return status ? status : slc_pass_words_place(rt);
}

/* Attaches the arena for a pipeline. No operation is of all ranks, so the scratch is that of the stage's group, and the
 * group's ranks attach it by themselves when it moves. */
static sluice_status attach_stage(sluice_runtime *rt, slc_segment *segment, void *scratch)
{
    sluice_status status = rt->memory.attached ? SLUICE_OK : slc_comm_attach_apart(rt->comm, segment, NULL, 0);
    /* The buffer may be longer than the scratch that the group gets: rows may lie after it. */
    return status ? status : slc_comm_group_attach(rt->lane, scratch, rt->stage.whole.scratch_bytes);
}

/* Attaches the arena to the communication, again if its scratch has moved, because peers that get messages need to know
 * where scratch is. */
static sluice_status attach(sluice_runtime *rt)
{
    void *scratch = slc_engine_buffer(rt, SLC_BUFFER_SCRATCH, SLC_NONE, 0);
    if (rt->memory.attached && rt->memory.scratch == scratch) return SLUICE_OK;
    slc_segment *segment = slc_arena_segment(rt->memory.arena);
    sluice_status status = slc_is_stage(&rt->stage)
                               ? attach_stage(rt, segment, scratch)
                               : slc_comm_attach(rt->comm, segment, scratch, rt->job.scratch_bytes);
    /* On a device that runs ahead updates and collectives share a stream, whose order the communication thread makes.
     */
    if (slc_device_runs_ahead(rt->device)) rt->updates = *slc_comm_stream(rt->comm);
    rt->memory.attached = !status;
    rt->memory.scratch = scratch;
    return status;
}

sluice_status slc_engine_place_plan(sluice_runtime *rt)
{
    sluice_status status = slc_arena_limit(rt->memory.arena, rt->current.plan->arena_bytes);
    for (uint32_t i = 0; !status && i < rt->current.plan->static_count; i++)
        status = slc_engine_claim(rt, &rt->current.plan->statics[i]);
    if (!status) status = locate(rt);
    /* Reading between steps may need the staging buffer at any time. This claim makes the peak count it. */
    if (!status) status = slc_staging_claim(rt, true);
    if (!status) status = slc_staging_claim(rt, false);
    if (!status) status = attach(rt);
    if (!status) status = slc_pass_init(rt, &rt->train, &rt->current.plan->train, false);
    if (!status) status = slc_pass_init(rt, &rt->evaluate, &rt->current.plan->evaluate, true);
    if (!status && rt->check) slc_check_place(rt);
    if (rt->current.plan->arena_bytes > rt->memory.most_planned_bytes)
        rt->memory.most_planned_bytes = rt->current.plan->arena_bytes;
    return status;
}

/* A buffer with the most that its alignment may cost. */
static uint64_t room_for(uint64_t bytes)
{
    return bytes + 64;
}

static uint64_t room_for_unit(const slc_job *job, const slc_unit *unit)
{
    const uint32_t gathered = slc_gathered_buffers(job, unit);
    uint64_t most = 0;
    for (int s = 0; s < slc_job_strategies(job); s++) {
        slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
        uint64_t bytes = 0;
        for (uint32_t i = slc_buffer_rules(job, unit, (slc_strategy)s, rows); i-- > 0;)
            bytes +=
                room_for(slc_buffer_bytes(job, unit, &rows[i])) * (rows[i].kind == SLC_BUFFER_GATHERED ? gathered : 1);
        if (bytes > most) most = bytes;
    }
    return most;
}

/* Returns bytes that no plan of the job in one phase exceeds, because everything that it may need has bytes of its own
 * here. On the host these are only addresses; memory is present only for what the current plan uses. */
static uint64_t most_bytes(const slc_job *job)
{
    uint64_t bytes = room_for(job->scratch_bytes) + room_for(8 * slc_agreement_words(job));
    for (uint32_t u = 0; u < job->unit_count; u++) bytes += room_for_unit(job, &job->units[u]);
    for (uint32_t a = 0; a < job->activation_count; a++) bytes += room_for(job->activations[a].bytes);
    for (uint32_t w = 0; w < job->workspace_count; w++) bytes += room_for(job->workspaces[w].bytes);
    return bytes + room_for(slc_reading_bytes(job));
}

static uint64_t most_bytes_of_phases(const sluice_runtime *rt)
{
    uint64_t bytes = most_bytes(&rt->job);
    for (uint32_t p = 0; p < rt->onebit.phase_count; p++) {
        slc_job job = rt->job;
        slc_job_set_phase(&job, &rt->onebit.phases[p]);
        bytes = slc_most(bytes, most_bytes(&job));
    }
    for (uint32_t p = 0; slc_is_stage(&rt->stage) && p < rt->stage.phase_count; p++)
        if (rt->stage.phases[p].own.plan) bytes = slc_most(bytes, rt->stage.phases[p].own.plan->arena_bytes);
    return bytes;
}

/* The memory of a GPU is taken with its addresses. So the arena is as large as the budget, in which later plans stay,
 * or without one as large as the plan; a re-plan may replace it (replan.c). */
static uint64_t address_bytes(const sluice_runtime *rt)
{
    const uint64_t most = most_bytes_of_phases(rt), budget = rt->current.budget_bytes;
    if (!slc_device_runs_ahead(rt->device)) return most;
    return budget > rt->model.reserved_bytes ? slc_least(most, budget - rt->model.reserved_bytes) : 0;
}

sluice_status slc_engine_make_arena(sluice_runtime *rt)
{
    const uint64_t bytes = slc_most(address_bytes(rt), rt->current.plan->arena_bytes);
    rt->memory.rss_commit_bytes = slc_rss_bytes(NULL);
    sluice_status status = slc_bounce_create(&rt->compute, &rt->memory.bounce);
    if (!status) status = slc_arena_create(rt->device, bytes, rt->model.reserved_bytes, &rt->memory.arena);
    if (status) return status;
    rt->memory.base = slc_arena_segment(rt->memory.arena)->base;
    status = slc_engine_place_plan(rt);
    rt->lanes.next_operation = atomic_load(&slc_comm_completed(rt->lane)->value);
    return status;
}
