/* Moving over from one plan to another: what a rank keeps goes to its new places, and what only the new plan holds
 * whole is gathered. tests/engine/replan_test.c covers this file. */
#include "lib/base/integer.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/replan/regroup.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/replan/transition.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/pass.h"

#include <string.h>

void slc_engine_begin_plan(sluice_runtime *rt, const slc_plan_answer *answer, slc_times *times)
{
    slc_current_plan *now = &rt->current;
    slc_times_fini(&now->times);
    now->measured = times != NULL;
    now->times = times ? *times : (slc_times){0};
    if (times) *times = (slc_times){0};
    now->plan = answer->plan;
    now->budget_bytes = answer->budget_bytes;
    now->number = ++now->made;
    now->steps = rt->planning.due_from = 0;
    now->forecast = answer->forecast;
    now->predicted = (sluice_step_parts){0};
    if (now->measured)
        now->predicted = (sluice_step_parts){.step_s = answer->forecast.step_s,
                                             .compute_s = answer->forecast.compute_s,
                                             .waiting_s = answer->forecast.exposed_s,
                                             .outside_s = answer->forecast.outside_s,
                                             .transfer_s = answer->forecast.communication_s};
    memcpy(now->member, answer->member, sizeof now->member);
    memcpy(now->note, answer->note, sizeof now->note);
    if (rt->rank != 0) return;
    uint32_t updates = 0, computed = 0;
    for (uint32_t i = 0; i < answer->plan->train.item_count; i++) {
        updates += answer->plan->train.items[i].kind == SLC_ITEM_UPDATE;
        computed += answer->plan->train.items[i].on_compute;
    }
    slc_log(SLC_LOG_INFO, "plan %u: %s%s%s, %llu bytes, %u of %u updates on the compute threads", rt->current.number,
            answer->plan->schedule, *answer->member ? ", " : "", answer->member,
            (unsigned long long)answer->plan->arena_bytes, computed, updates);
    if (*answer->note) slc_log(SLC_LOG_WARN, "plan %u: %s", rt->current.number, answer->note);
}

/* Moves the bytes from the places of one plan to those of another. Meanwhile everything that either plan uses of the
 * arena is claimed. */
static sluice_status move_in_place(sluice_runtime *rt, const slc_transition *transition, uint64_t bytes)
{
    unsigned char on_host[16 << 10];
    void *base, *room = slc_bounce_room(&rt->memory.bounce);
    sluice_status status = slc_arena_limit(rt->memory.arena, bytes);
    if (!status)
        status = slc_arena_claim(rt->memory.arena, SLC_MEMORY_REPLANNING, "moving between plans", 0, bytes, &base);
    if (status) return status;
    status = slc_moves_run(&rt->compute, base, bytes, transition->moves, transition->move_count, room ? room : on_host,
                           room ? (uint64_t)SLC_BOUNCE_ROOM_BYTES : sizeof on_host);
    if (!status) status = slc_stream_synchronize(&rt->compute);
    sluice_status released = slc_arena_release(rt->memory.arena, 0, bytes);
    return status ? status : released;
}

/* Moves everything to a larger arena. There are two arenas only while it copies. */
static sluice_status move_to_larger(sluice_runtime *rt, slc_transition *transition)
{
    sluice_status status = slc_moves_copy(&rt->compute, transition->larger.base, rt->memory.base, transition->moves,
                                          transition->move_count);
    if (!status) status = slc_stream_synchronize(&rt->compute);
    if (status) return status;
    slc_comm_attach(rt->comm, NULL, NULL, 0);
    rt->memory.attached = false;
    status = slc_arena_replace(rt->memory.arena, &transition->larger);
    rt->memory.base = slc_arena_segment(rt->memory.arena)->base;
    return status;
}

static sluice_status release_statics(sluice_runtime *rt)
{
    const slc_plan *plan = rt->current.plan;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < plan->static_count; i++) status = slc_engine_release(rt, &plan->statics[i]);
    return status;
}

/* Returns the bytes of the larger of the two plans, at most those of the arena. */
static uint64_t room_of_both(const sluice_runtime *rt, const slc_plan *plan)
{
    const uint64_t larger = slc_most(rt->current.plan->arena_bytes, plan->arena_bytes);
    return slc_least(larger, slc_arena_most(rt->memory.arena));
}

/* Collects the values of units that are cut otherwise than before. Meanwhile everything that either plan uses of the
 * arena is claimed. */
static sluice_status collect(sluice_runtime *rt, const slc_regrouping *regrouping, const slc_transition *transition,
                             uint64_t bytes)
{
    void *base;
    sluice_status status = slc_arena_limit(rt->memory.arena, bytes);
    if (!status)
        status = slc_arena_claim(rt->memory.arena, SLC_MEMORY_REPLANNING, "moving between units", 0, bytes, &base);
    if (status) return status;
    status = slc_collect_units(rt, regrouping, transition);
    sluice_status released = slc_arena_release(rt->memory.arena, 0, bytes);
    return status ? status : released;
}

static sluice_status gather_whole(sluice_runtime *rt, const slc_transition *transition)
{
    for (size_t g = 0; g < transition->gather_count; g++) {
        const slc_unit *unit = &rt->job.units[transition->gathers[g].unit];
        void *buffer = rt->memory.base + transition->gathers[g].offset;
        slc_op op = {.kind = SLC_ALL_GATHER,
                     .dtype = transition->gathers[g].dtype,
                     .elements = unit->elements,
                     .block_elements = unit->block_elements,
                     .block_count = slc_unit_blocks(unit),
                     .src = buffer,
                     .dst = buffer,
                     .scale = 1,
                     .alone = true,
                     .what = unit->name};
        uint32_t index;
        sluice_status status = slc_comm_submit(rt->lane, &op, 1, &index);
        if (status) return status;
        rt->lanes.next_operation = index + 1;
    }
    sluice_status status = slc_comm_wait(rt->lane, rt->lanes.next_operation);
    return status ? status : slc_comm_synchronize(rt->lane, rt->lanes.next_operation);
}

/* Destroys the plan that ran, or hands it over as *left. From here on a failure is the runtime's. */
static sluice_status move_over(sluice_runtime *rt, const slc_plan_answer *answer, const slc_regrouping *regrouping,
                               slc_transition *transition, slc_times *times, slc_plan **left)
{
    uint64_t bytes = rt->current.plan->arena_bytes > answer->plan->arena_bytes ? rt->current.plan->arena_bytes
                                                                               : answer->plan->arena_bytes;
    slc_pass_fini(&rt->train);
    slc_pass_fini(&rt->evaluate);
    sluice_status status = release_statics(rt);
    if (!status && regrouping) status = collect(rt, regrouping, transition, room_of_both(rt, answer->plan));
    if (!status)
        status = transition->larger.base ? move_to_larger(rt, transition) : move_in_place(rt, transition, bytes);
    /* Peers know this rank's scratch, whose size follows from the units, so it is attached anew. */
    if (regrouping) rt->memory.attached = false;
    if (left)
        *left = rt->current.plan;
    else
        slc_plan_destroy(rt->current.plan);
    slc_engine_begin_plan(rt, answer, times);
    if (!status) status = slc_engine_place_plan(rt);
    if (!status) status = gather_whole(rt, transition);
    for (size_t z = 0; !status && z < transition->zeroed_count; z++)
        status =
            slc_fill_zero(&rt->compute, rt->memory.base + transition->zeroed[z].offset, transition->zeroed[z].bytes);
    if (!status) status = slc_stream_synchronize(&rt->compute);
    slc_measure_reset(rt->measure, &rt->job);
    return slc_runtime_fail(rt, status);
}

/* Makes room for a plan that takes more than the arena. On the host device the arena has addresses for all plans. */
static sluice_status make_room(sluice_runtime *rt, const slc_plan *plan, slc_segment *larger)
{
    const uint64_t room = slc_arena_most(rt->memory.arena);
    if (plan->arena_bytes <= room) return SLUICE_OK;
    if (slc_device_runs_ahead(rt->device))
        return slc_error_context(slc_segment_create(rt->device, plan->arena_bytes, larger),
                                 "the new plan's arena, next to the old one's %llu bytes", (unsigned long long)room);
    return slc_error(SLUICE_ERR_MEMORY, "the new plan takes %llu bytes, more than the %llu addresses of the arena",
                     (unsigned long long)plan->arena_bytes, (unsigned long long)room);
}

/* Makes the transition, on all ranks or on none. */
static sluice_status make_transition(sluice_runtime *rt, const slc_plan *plan, const slc_regrouping *regrouping,
                                     slc_transition *transition)
{
    const slc_plan *now = rt->current.plan;
    const uint32_t rank = (uint32_t)rt->replica;
    slc_unit_origins origins = {0};
    if (regrouping)
        origins =
            (slc_unit_origins){&regrouping->job_before, regrouping->same, regrouping->pieces, regrouping->piece_count};
    sluice_status status =
        regrouping ? slc_transition_regroup(&rt->job, &origins, now, plan, room_of_both(rt, plan), rank, transition)
                   : slc_transition_init(&rt->job, now, plan, rank, transition);
    if (!status) status = make_room(rt, plan, &transition->larger);
    double failed = status != SLUICE_OK;
    sluice_status agreed = sluice_world_all_reduce(rt->world, &failed, 1);
    if (!status && !agreed && failed > 0)
        agreed = slc_error(SLUICE_ERR_MEMORY, "%.0f other ranks cannot change to the new plan", failed);
    slc_runtime_alike(rt, status ? status : agreed);
    if (status || agreed) slc_transition_fini(transition);
    return status ? status : agreed;
}

static sluice_status adopt(sluice_runtime *rt, const slc_plan_answer *answer, const slc_regrouping *regrouping,
                           slc_times *times, slc_plan **left)
{
    slc_transition transition;
    sluice_status status = make_transition(rt, answer->plan, regrouping, &transition);
    if (status) {
        slc_plan_destroy(answer->plan);
        return status;
    }
    status = move_over(rt, answer, regrouping, &transition, times, left);
    slc_transition_fini(&transition);
    return status;
}

sluice_status slc_engine_adopt_plan(sluice_runtime *rt, const slc_plan_answer *answer, slc_times *times)
{
    return adopt(rt, answer, NULL, times, NULL);
}

sluice_status slc_engine_adopt_regrouped(sluice_runtime *rt, const slc_plan_answer *answer, slc_times *times,
                                         const slc_regrouping *regrouping)
{
    return adopt(rt, answer, regrouping, times, NULL);
}

sluice_status slc_engine_swap_plan(sluice_runtime *rt, const slc_plan_answer *answer, slc_times *times, slc_plan **left)
{
    *left = NULL;
    return adopt(rt, answer, NULL, times, left);
}

sluice_status slc_engine_change_plan(sluice_runtime *rt, const slc_plan_answer *answer, slc_plan **left)
{
    slc_times times = rt->current.times;
    *left = NULL;
    rt->current.times = (slc_times){0};
    sluice_status status = adopt(rt, answer, NULL, &times, left);
    if (!*left) rt->current.times = times; /* nothing has moved */
    return status;
}
