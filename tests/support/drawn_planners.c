/* A plan is a function of the job and the seed alone, so every rank draws the same. */
#include "tests/support/drawn_planners.h"

#include "lib/plan/fused_job.h"
#include "sched/joint/least_memory.h"
#include "sched/planner.h"
#include "sched/planner/parts.h"
#include "tests/support/draw.h"
#include "tests/support/random_order.h"
#include "sched/layout/make_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Puts some updates on the compute lane, which may have all of them. */
static void draw_lanes(const slc_strategy *strategies, uint64_t *random, slc_order *order)
{
    uint64_t often = draw(random, 4);
    for (uint32_t i = 0; i < order->count; i++) {
        slc_item *item = &order->items[i];
        if (item->kind == SLC_ITEM_UPDATE && strategies[item->unit] != SLC_ONEBIT)
            item->on_compute = draw(random, 3) < often;
    }
}

/* Draws strategies, recomputation and an order; the budget is all that the plan takes. */
static sluice_status plan_drawn(const slc_job *job, slc_updates updates, uint64_t seed, slc_plan_answer *answer)
{
    uint64_t random = seed;
    slc_strategy *strategies = calloc(job->unit_count, sizeof *strategies);
    for (uint32_t u = 0; u < job->unit_count; u++)
        strategies[u] =
            slc_unit_strategy(job, &job->units[u], (slc_strategy)draw(&random, (uint64_t)slc_job_strategies(job)));
    bool *recompute = calloc(job->layer_count, sizeof *recompute);
    for (uint32_t l = 0; l < job->layer_count; l++) recompute[l] = job->can_recompute[l] && draw(&random, 2);
    slc_scheduling in = {
        .job = job, .strategies = strategies, .recompute = recompute, .limit = UINT64_MAX, .seed = seed};
    const slc_scheduler *evaluation = draw(&random, 2) ? &slc_scheduler_random : &slc_scheduler_one_ahead;
    slc_order order = {0};
    if (draw(&random, 4))
        random_order_make(&in, &order);
    else
        slc_scheduler_random.train(&in, &order);
    if (updates == SLC_UPDATES_COMPUTE) draw_lanes(strategies, &random, &order);
    *answer = (slc_plan_answer){0};
    sluice_status status = slc_plan_from_order(&in, &order, evaluation, &answer->plan);
    if (!status) answer->budget_bytes = answer->plan->arena_bytes + job->reserved_bytes;
    slc_order_fini(&order);
    free(strategies);
    free(recompute);
    return status;
}

static sluice_status draw_times(const slc_job *job, uint64_t random, slc_times *times)
{
    sluice_status status = slc_times_estimate(job, times);
    if (status) return status;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) times->slot_s[s] = 1e-6 * (double)(1 + draw(&random, 100));
    times->link.reduce_scatter.bytes_per_s = 1e7 * (double)(1 + draw(&random, 100));
    times->link.all_gather = times->link.reduce_scatter;
    times->link.kappa = 0.1 * (double)draw(&random, 10);
    times->link.thread_moves = draw(&random, 2);
    times->link.block_bytes = 64 << draw(&random, 6);
    times->update_compute_s_per_element = times->update_s_per_element * 0.25 * (double)draw(&random, 5);
    return SLUICE_OK;
}

/* The least arena of all choices that the request leaves open, with what the program itself reserves. */
static sluice_status least_budget(const slc_job *job, const slc_plan_request *ask, uint64_t *bytes)
{
    slc_strategy *strategies = calloc(2 * (size_t)job->unit_count, sizeof *strategies);
    bool *recompute = calloc(job->layer_count, sizeof *recompute);
    slc_joint_request joint = {
        .job = job, .times = ask->times, .strategies = strategies, .recompute = ask->recompute, .limit = UINT64_MAX};
    sluice_status status = slc_strategies_parse(job, ask->strategy, strategies);
    if (!status) status = slc_least_memory(&joint, strategies + job->unit_count, recompute, bytes);
    *bytes += job->reserved_bytes;
    free(strategies);
    free(recompute);
    return status;
}

/* A schedule's plan for a budget between the least there is and what the schedule takes by itself. If that fails,
 * the plan is for exactly what it takes; some schedules place operations otherwise within a limit, so even that may be
 * too little, and the last plan has no budget. */
static sluice_status plan_tightly(const slc_job *job, const slc_plan_request *request, const char *schedule,
                                  uint64_t seed, slc_plan_answer *answer)
{
    slc_times times;
    uint64_t least, random = seed;
    sluice_status status = draw_times(job, seed, &times);
    if (status) return status;
    slc_plan_request ask = *request;
    ask.schedule = schedule;
    ask.times = &times;
    ask.effort_s = 0.05;
    ask.budget_bytes = 0;
    if (ask.updates == SLC_UPDATES_COMPUTE) ask.updates = (slc_updates)draw(&random, SLC_UPDATES_BOTH + 1);
    status = slc_plan_for_budget(job, &ask, answer);
    if (!status) status = least_budget(job, &ask, &least);
    if (!status) {
        uint64_t most = answer->plan->arena_bytes + job->reserved_bytes, share = draw(&random, 5);
        slc_plan_destroy(answer->plan);
        const uint64_t budgets[] = {most > least ? least + (most - least) * share / 4 : most, most, 0};
        status = SLUICE_ERR_BUDGET;
        for (int b = 0; b < 3 && status == SLUICE_ERR_BUDGET; b++) {
            ask.budget_bytes = budgets[b];
            status = slc_plan_for_budget(job, &ask, answer);
        }
    }
    slc_times_fini(&times);
    return status;
}

sluice_status plan_as_named(void *context, const slc_job *job, const slc_plan_request *request, slc_plan_answer *answer)
{
    (void)context;
    char schedule[16];
    unsigned long long seed;
    if (sscanf(request->schedule, "%15[a-z_]/%llu", schedule, &seed) != 2) return SLUICE_ERR_ARGUMENT;
    if (!strcmp(schedule, "drawn")) return plan_drawn(job, request->updates, seed, answer);
    return plan_tightly(job, request, schedule, seed, answer);
}

sluice_status plan_ever_faster(void *context, const slc_job *job, const slc_plan_request *request,
                               slc_plan_answer *answer)
{
    static double step_s = 1; /* of this process */
    sluice_status status = plan_as_named(context, job, request, answer);
    if (!status) answer->forecast.step_s = step_s /= 2;
    return status;
}

bool wants_unread_times(void *context, const char *schedule)
{
    (void)context;
    return schedule != NULL;
}

sluice_status fuse_drawn(void *context, const slc_job *job, const slc_fuse_request *request, uint32_t *group)
{
    (void)context;
    uint64_t random = mix(job->unit_count + strlen(request->plan->schedule) +
                          strtoull(strchr(request->plan->schedule, '/') + 1, NULL, 10)),
             often = draw(&random, 4);
    for (uint32_t u = 0; u < job->unit_count; u++) group[u] = u;
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t v = u + 1; v < job->unit_count; v++)
            if (!request->alone[u] && !request->alone[v] && slc_units_join(&job->units[u], &job->units[v]) &&
                draw(&random, 3) < often)
                group[v] = group[u];
    return SLUICE_OK;
}
