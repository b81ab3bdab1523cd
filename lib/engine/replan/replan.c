/* Re-planning: measure, ask for a plan, move over to it. What goes wrong before anything has moved leaves the old plan
 * running. */
#include "lib/engine/replan/replan.h"

#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/transition.h"

#include <stdlib.h>
#include <string.h>

enum { WARM_UP_STEPS = 1, MEASURED_STEPS = 2 };

static void begin_plan(sluice_runtime *rt, const slc_plan_answer *answer, bool measured)
{
    rt->plan = answer->plan;
    rt->budget_bytes = answer->budget_bytes;
    rt->plan_number++;
    rt->plan_steps = 0;
    rt->predicted_step_s = measured ? answer->forecast.step_s : 0;
    if (rt->rank != 0) return;
    uint32_t updates = 0, computed = 0;
    for (uint32_t i = 0; i < answer->plan->train.item_count; i++) {
        updates += answer->plan->train.items[i].kind == SLC_ITEM_UPDATE;
        computed += answer->plan->train.items[i].on_compute;
    }
    slc_log(SLC_LOG_INFO, "plan %u: %s%s%s, %llu bytes, %u of %u updates on the compute threads", rt->plan_number,
            answer->plan->schedule, *answer->member ? ", " : "", answer->member,
            (unsigned long long)answer->plan->arena_bytes, computed, updates);
    if (*answer->note) slc_log(SLC_LOG_WARN, "plan %u: %s", rt->plan_number, answer->note);
}

sluice_status slc_engine_first_request(sluice_runtime *rt, slc_plan_request *request)
{
    *request = (slc_plan_request){.strategy = rt->strategy,
                                  .schedule = rt->schedule,
                                  .budget_bytes = rt->config.budget_bytes,
                                  .budget_of_dp = rt->config.budget_of_dp};
    return slc_engine_least_budget(rt, &request->budget_bytes);
}

/* The serial plan, or where that does not fit the schedule's own. */
static sluice_status share_simple_plan(sluice_runtime *rt, slc_plan_request *request, slc_plan_answer *answer)
{
    const char *schedule = request->schedule;
    request->schedule = "serial";
    sluice_status status = slc_engine_share_plan(rt, request, answer);
    if (status != SLUICE_ERR_BUDGET || !strcmp(schedule, "serial")) return status;
    request->schedule = schedule;
    return slc_engine_share_plan(rt, request, answer);
}

slc_plan_request slc_engine_standing_request(const sluice_runtime *rt)
{
    return (slc_plan_request){.strategy = rt->strategy_now ? rt->strategy_now : rt->strategy,
                              .schedule = rt->schedule_now ? rt->schedule_now : rt->schedule,
                              .budget_bytes = rt->budget_bytes};
}

sluice_status slc_engine_try_plan(sluice_runtime *rt, const slc_plan_request *request)
{
    slc_plan_request simple = *request;
    slc_plan_answer answer = {0};
    simple.times = NULL;
    sluice_status status = share_simple_plan(rt, &simple, &answer);
    if (!status) slc_plan_destroy(answer.plan);
    return status;
}

sluice_status slc_engine_first_plan(sluice_runtime *rt)
{
    slc_plan_request request;
    slc_plan_answer answer = {0};
    rt->replan_due = slc_schedule_wants_times(rt->schedule);
    sluice_status status = slc_engine_first_request(rt, &request);
    if (status) return status;
    status = rt->replan_due ? share_simple_plan(rt, &request, &answer) : slc_engine_share_plan(rt, &request, &answer);
    if (status) return status;
    rt->dp_bytes = answer.dp_bytes;
    begin_plan(rt, &answer, false);
    return SLUICE_OK;
}

/* ---- Moving over ---- */

static sluice_status release_statics(sluice_runtime *rt)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < rt->plan->static_count; i++) {
        const slc_claim *claim = &rt->plan->statics[i];
        status = slc_arena_release(rt->arena, rt->plan->buffers[claim->buffer].offset + claim->first_byte,
                                   claim->end_byte - claim->first_byte);
    }
    return status;
}

/* While bytes move, all of the arena that either plan uses is in use. */
static sluice_status move_kept(sluice_runtime *rt, const slc_transition *transition, uint64_t bytes)
{
    void *base;
    sluice_status status = release_statics(rt);
    if (!status) status = slc_arena_limit(rt->arena, bytes);
    if (!status) status = slc_arena_claim(rt->arena, SLC_MEMORY_REPLANNING, "moving between plans", 0, bytes, &base);
    if (status) return status;
    slc_moves_run(base, bytes, transition->moves, transition->move_count);
    return slc_arena_release(rt->arena, 0, bytes);
}

static sluice_status gather_whole(sluice_runtime *rt, const slc_transition *transition)
{
    for (size_t g = 0; g < transition->gather_count; g++) {
        const slc_unit *unit = &rt->job.units[transition->gathers[g].unit];
        void *buffer = rt->base + transition->gathers[g].offset;
        slc_op op = {.kind = SLC_ALL_GATHER,
                     .dtype = slc_comm_dtype(transition->gathers[g].dtype),
                     .elements = unit->elements,
                     .block_elements = unit->block_elements,
                     .block_count = slc_unit_blocks(unit),
                     .src = buffer,
                     .dst = buffer,
                     .scale = 1,
                     .what = unit->name};
        uint32_t index;
        sluice_status status = slc_comm_submit(rt->comm, &op, 1, &index);
        if (status) return status;
        rt->next_operation = index + 1;
    }
    return slc_comm_wait(rt->comm, rt->next_operation);
}

/* The plan that ran is destroyed. From here on a failure is the runtime's. */
static sluice_status move_over(sluice_runtime *rt, const slc_plan_answer *answer, slc_transition *transition,
                               bool measured)
{
    uint64_t bytes =
        rt->plan->arena_bytes > answer->plan->arena_bytes ? rt->plan->arena_bytes : answer->plan->arena_bytes;
    slc_pass_fini(&rt->train);
    slc_pass_fini(&rt->evaluate);
    sluice_status status = move_kept(rt, transition, bytes);
    slc_plan_destroy(rt->plan);
    begin_plan(rt, answer, measured);
    if (!status) status = slc_engine_place_plan(rt);
    if (!status) status = gather_whole(rt, transition);
    for (size_t z = 0; !status && z < transition->zeroed_count; z++)
        status = slc_fill_zero(&rt->compute, rt->base + transition->zeroed[z].offset, transition->zeroed[z].bytes);
    if (!status) status = slc_stream_synchronize(&rt->compute);
    slc_measure_reset(rt->measure, &rt->job);
    return slc_runtime_fail(rt, status);
}

/* ---- Re-planning ---- */

/* All ranks go over, or none does. */
static sluice_status prepare(sluice_runtime *rt, const slc_plan *plan, slc_transition *transition)
{
    uint64_t room = slc_arena_segment(rt->arena)->bytes;
    if (plan->arena_bytes > room) /* alike on every rank */
        return slc_runtime_alike(
            rt, slc_error(SLUICE_ERR_MEMORY, "the new plan takes %llu bytes, more than the %llu addresses of the arena",
                          (unsigned long long)plan->arena_bytes, (unsigned long long)room));
    sluice_status status = slc_transition_init(&rt->job, rt->plan, plan, (uint32_t)rt->rank, transition);
    double failed = status != SLUICE_OK;
    sluice_status agreed = sluice_world_all_reduce(rt->world, &failed, 1);
    if (!status && !agreed && failed > 0)
        agreed = slc_error(SLUICE_ERR_MEMORY, "%.0f other ranks cannot change to the new plan", failed);
    slc_runtime_alike(rt, status ? status : agreed);
    if (!status && agreed) slc_transition_fini(transition);
    return status ? status : agreed;
}

static sluice_status adopt(sluice_runtime *rt, const slc_plan_answer *answer, bool measured)
{
    slc_transition transition;
    sluice_status status = prepare(rt, answer->plan, &transition);
    if (status) {
        slc_plan_destroy(answer->plan);
        return status;
    }
    status = move_over(rt, answer, &transition, measured);
    slc_transition_fini(&transition);
    return status;
}

static sluice_status replan(sluice_runtime *rt, slc_plan_request *request)
{
    slc_times times = {0};
    slc_plan_answer answer;
    bool measured = slc_schedule_wants_times(request->schedule);
    sluice_status status = slc_phase_require_equal(rt, "replan");
    if (!status) status = slc_runtime_drain(rt);
    if (!status && measured) status = slc_runtime_fail(rt, slc_engine_measure(rt, &times));
    if (status) return status;
    request->times = measured ? &times : NULL;
    status = slc_engine_share_plan(rt, request, &answer);
    slc_times_fini(&times);
    return status ? status : adopt(rt, &answer, measured);
}

/* Times that were measured in the phase before are good for slots and the link. */
sluice_status slc_engine_plan_phase(sluice_runtime *rt)
{
    slc_plan_request request = slc_engine_standing_request(rt);
    slc_plan_answer answer;
    rt->replan_due = slc_schedule_wants_times(request.schedule);
    if (rt->replan_due && rt->measure->link_known) {
        sluice_status status = replan(rt, &request);
        if (status != SLUICE_ERR_BUDGET) return status;
    }
    request.times = NULL;
    sluice_status status =
        rt->replan_due ? share_simple_plan(rt, &request, &answer) : slc_engine_share_plan(rt, &request, &answer);
    return status ? status : adopt(rt, &answer, false);
}

sluice_status slc_engine_after_step(sluice_runtime *rt)
{
    rt->plan_steps++;
    if (!rt->replan_due) return SLUICE_OK;
    if (rt->plan_steps == WARM_UP_STEPS) {
        sluice_status status = slc_runtime_drain(rt);
        if (!status) slc_measure_reset(rt->measure, &rt->job);
        return status;
    }
    if (rt->plan_steps < WARM_UP_STEPS + MEASURED_STEPS || rt->replicas_differ) return SLUICE_OK;
    rt->replan_due = false;
    slc_plan_request request = slc_engine_standing_request(rt);
    sluice_status status = replan(rt, &request);
    if (!status || rt->failed || sluice_world_check(rt->world)) return status;
    if (rt->rank == 0)
        slc_log(SLC_LOG_WARN, "re-planning failed, training goes on with the first plan: %s", sluice_last_error());
    return SLUICE_OK;
}

/* NULL: it stays as it is. */
static sluice_status keep_text(char **kept, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) return slc_error(SLUICE_ERR_MEMORY, "what a re-plan asked for");
    if (!text) return SLUICE_OK;
    free(*kept);
    *kept = copy;
    return SLUICE_OK;
}

sluice_status sluice_runtime_replan(sluice_runtime *rt, const char *strategy, const char *schedule, uint64_t budget)
{
    sluice_status status = slc_runtime_require(rt, true, "replan");
    if (status) return status;
    if (rt->mode != SLC_IDLE) return slc_error(SLUICE_ERR_ORDER, "replan: must be called between steps");
    slc_plan_request request = {.strategy = strategy ? strategy : rt->strategy,
                                .schedule = schedule ? schedule : rt->schedule,
                                .budget_bytes = budget ? budget : rt->budget_bytes};
    status = slc_engine_least_budget(rt, &request.budget_bytes);
    if (!status) status = slc_phase_check_plans(rt, &request);
    if (!status) status = replan(rt, &request);
    if (status) return status;
    rt->replan_due = false;
    status = keep_text(&rt->strategy_now, strategy);
    return slc_runtime_fail(rt, status ? status : keep_text(&rt->schedule_now, schedule));
}
