/* The members that choose by a rule: uniform strategies under baselines, mixtures, choices that grow, the least memory.
 * joint_test.c covers this file. */
#include "sched/joint/affordable_run.h"
#include "sched/joint/growth.h"
#include "sched/joint/least_memory.h"
#include "sched/joint/mixed.h"
#include "sched/joint/search.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"
#include "sched/schedulers/partition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double GROWTH_SHARE = 0.1; /* of the effort: what each growth of choices may take */
static const double RUNS_SHARE = 0.06;  /* of the effort: what making one plan of a baseline may take */
enum { START_TRIES = 300 };             /* orders of packing for the plan that a request begins with */

/* ---- Baselines ---- */

void slc_joint_choose_runs(slc_joint_search *j)
{
    const slc_joint_request *r = j->request;
    const uint64_t saturating = slc_partition_bytes(r->job, r->times);
    const uint64_t bytes = slc_affordable_run(r->job, saturating, RUNS_SHARE * j->effort_s);
    j->baseline_times = *r->times;
    if (bytes == saturating) return;
    j->baseline_times.link.block_bytes = bytes;
    snprintf(j->answer->note, sizeof j->answer->note,
             "runs of %.2f MiB are too many to plan within the effort; baselines have runs of %.2f MiB",
             (double)saturating / 0x1p20, (double)bytes / 0x1p20);
}

static slc_scheduling baseline_scheduling(const slc_joint_search *j)
{
    slc_scheduling in = slc_joint_scheduling_of(j);
    in.times = &j->baseline_times;
    return in;
}

/* Tries a scheduler on the choices looked at. The plan is made from its order, so that one that is too large costs
 * little. */
static sluice_status try_scheduler(slc_joint_search *j, const slc_scheduler *scheduler, uint32_t tries,
                                   const char *member)
{
    slc_scheduling in = baseline_scheduling(j);
    slc_order order = {0};
    slc_plan *plan = NULL;
    slc_forecast forecast;
    uint64_t arena;
    const double begun_s = j->work->spent_s;
    scheduler->train(&in, &order);
    sluice_status status = order.failed ? slc_error(SLUICE_ERR_MEMORY, "order") : SLUICE_OK;
    slc_trying trying = {.tries = tries, .at_most_s = slc_joint_below_s(j, scheduler), .in_time = tries > 0};
    if (!status) status = slc_plan_try(&in, &order, scheduler, &trying, &plan, &arena, &forecast);
    slc_order_fini(&order);
    if (!status && plan) status = slc_joint_consider(j, plan, &forecast, scheduler, member);
    if (!scheduler->measures) j->plan_s = fmax(j->plan_s, j->work->spent_s - begun_s);
    return status;
}

sluice_status slc_joint_try_schedulers(slc_joint_search *j, const char *what)
{
    sluice_status status = SLUICE_OK;
    bool tried = false;
    if (slc_resident_bytes_of_all(j->request->job, j->strategies) > j->request->limit) return SLUICE_OK;
    const slc_scheduler *scheduler;
    for (size_t i = 0; !status && (scheduler = slc_scheduler_at(i)); i++) {
        if (!scheduler->baseline || (tried && !slc_joint_affords(j, scheduler))) continue;
        tried = true;
        char member[48];
        snprintf(member, sizeof member, "%s, %s", scheduler->name, what);
        status = try_scheduler(j, scheduler, 0, member);
    }
    return status;
}

static sluice_status try_uniform(slc_joint_search *j, slc_strategy strategy, bool recompute)
{
    char what[40];
    slc_joint_choose_uniform(j, strategy, recompute);
    snprintf(what, sizeof what, "%s%s",
             slc_strategies_free(j->request->job, j->request->strategies) ? slc_strategy_name(strategy) : "as given",
             recompute ? ", recomputing" : "");
    return slc_joint_try_schedulers(j, what);
}

sluice_status slc_joint_try_baselines(slc_joint_search *j, bool all)
{
    bool free_units = slc_strategies_free(j->request->job, j->request->strategies),
         again = slc_joint_may_recompute(j->request);
    int count = free_units && all ? slc_job_strategies(j->request->job) : 1;
    sluice_status status = SLUICE_OK;
    for (int k = all; !status && k < count && !(all && !slc_joint_affords_plan(j)); k++) {
        status = try_uniform(j, slc_strategies_by_memory[k], false);
        if (!status && again && (!j->list.count || slc_joint_affords_plan(j)))
            status = try_uniform(j, slc_strategies_by_memory[k], true);
    }
    return status;
}

sluice_status slc_joint_try_start(slc_joint_search *j)
{
    const slc_plan *start = j->request->start;
    const slc_scheduler *scheduler = slc_joint_has_model(j->request)
                                         ? &slc_scheduler_ilp
                                         : &slc_scheduler_one_ahead; /* no slot of it waits for all */
    const slc_trying trying = {.tries = START_TRIES, .in_time = true};
    slc_order order = {0};
    slc_plan *plan = NULL;
    slc_forecast forecast;
    uint64_t arena;
    if (!start) return SLUICE_OK;
    memcpy(j->strategies, start->strategies, j->request->job->unit_count * sizeof *j->strategies);
    for (uint32_t l = 0; l < j->request->job->layer_count; l++)
        j->recompute[l] = start->recompute && start->recompute[l];
    slc_scheduling in = slc_joint_scheduling_of(j);
    for (uint32_t i = 0; i < start->train.item_count; i++) slc_order_append(&order, start->train.items[i]);
    sluice_status status = order.failed ? slc_error(SLUICE_ERR_MEMORY, "order") : SLUICE_OK;
    if (!status) status = slc_plan_try(&in, &order, scheduler, &trying, &plan, &arena, &forecast);
    slc_order_fini(&order);
    return status || !plan ? status : slc_joint_consider(j, plan, &forecast, scheduler, "for all layers");
}

/* ---- Mixtures, if no solver chooses, or its answers lose much to packing ---- */

/* Tries the choices that `mixed` makes for a scheduler, under all schedulers. */
static sluice_status try_mixture(slc_joint_search *j, const slc_scheduler *scheduler, bool recompute)
{
    uint64_t bytes;
    char what[40];
    slc_joint_choose_uniform(j, SLC_FSDP, recompute);
    slc_scheduling in = baseline_scheduling(j);
    in.strategies = j->request->strategies;
    sluice_status status =
        slc_mixed_choose(&in, scheduler, j->request->limit, slc_joint_end_s(j), j->strategies, &bytes);
    snprintf(what, sizeof what, "mixed%s", recompute ? ", recomputing" : "");
    return status || bytes > j->request->limit ? status : slc_joint_try_schedulers(j, what);
}

/* Lets choices grow from all fsdp or, if that does not fit, from the choices that need least. */
static sluice_status try_grown(slc_joint_search *j, slc_strategy to)
{
    const double until_s = j->work->spent_s + slc_joint_left_s(j) / 2; /* the rest is for the schedulers */
    uint64_t bytes;
    char what[40];
    bool cut, fits;
    slc_joint_choose_uniform(j, SLC_FSDP, true);
    sluice_status status =
        slc_growth_find(j->request, &slc_scheduler_one_ahead, to, until_s, j->strategies, j->recompute, &fits);
    if (!status && !fits)
        status = slc_least_memory_within(j->request, until_s, j->strategies, j->recompute, &bytes, &cut);
    if (!status && !fits && bytes <= j->request->limit)
        status = slc_growth_find(j->request, &slc_scheduler_one_ahead, to, until_s, j->strategies, j->recompute, &fits);
    snprintf(what, sizeof what, "grown to %s", slc_strategy_name(to));
    return status || !fits ? status : slc_joint_try_schedulers(j, what);
}

sluice_status slc_joint_try_growth(slc_joint_search *j)
{
    const double until_s = j->until_s, share_s = GROWTH_SHARE * slc_joint_left_s(j);
    bool any = slc_strategies_free(j->request->job, j->request->strategies) || slc_joint_may_recompute(j->request);
    if (!any || share_s <= 0 || (slc_joint_is_deep(j) && share_s < j->plan_s)) return SLUICE_OK;
    j->until_s = j->work->spent_s + share_s;
    sluice_status status = try_grown(j, SLC_SDP);
    j->until_s = fmin(until_s, j->work->spent_s + share_s);
    if (!status && slc_job_strategies(j->request->job) > SLC_ONEBIT && !slc_joint_is_spent(j))
        status = try_grown(j, SLC_ONEBIT);
    j->until_s = until_s;
    return status;
}

sluice_status slc_joint_try_mixtures(slc_joint_search *j)
{
    const slc_scheduler *scheduler;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0;
         !status && slc_strategies_free(j->request->job, j->request->strategies) && (scheduler = slc_scheduler_at(i));
         i++) {
        if (!scheduler->baseline || (i && !slc_joint_affords_plan(j))) continue;
        status = try_mixture(j, scheduler, false);
        if (!status && slc_joint_may_recompute(j->request)) status = try_mixture(j, scheduler, true);
    }
    return status;
}

sluice_status slc_joint_try_quick_mixture(slc_joint_search *j)
{
    double until_s = j->until_s;
    if (!slc_strategies_free(j->request->job, j->request->strategies)) return SLUICE_OK;
    j->until_s = j->work->spent_s + slc_joint_left_s(j) / 10;
    sluice_status status = slc_joint_affords_plan(j) ? try_mixture(j, &slc_scheduler_one_ahead, false) : SLUICE_OK;
    if (!status && slc_joint_may_recompute(j->request) && slc_joint_affords_plan(j))
        status = try_mixture(j, &slc_scheduler_one_ahead, true);
    j->until_s = until_s;
    return status;
}

sluice_status slc_joint_try_least_memory(slc_joint_search *j)
{
    uint64_t arena;
    bool cut;
    const double until_s = j->work->spent_s + slc_least_memory_share_s(j->effort_s);
    slc_smallest_arena *kept = j->request->least;
    sluice_status status = slc_least_memory_within(j->request, until_s, j->strategies, j->recompute, &arena, &cut);
    if (status) return status;
    if (kept) {
        memcpy(kept->strategies, j->strategies, j->request->job->unit_count * sizeof *j->strategies);
        memcpy(kept->recompute, j->recompute, j->request->job->layer_count * sizeof *j->recompute);
        kept->arena_bytes = arena;
        kept->cut = cut;
    }
    if (arena < j->least) j->least = arena;
    if (arena > j->request->limit) return SLUICE_OK;
    status = try_scheduler(j, &slc_scheduler_serial, SLC_LEAST_MEMORY_TRIES, "serial, least memory");
    if (!status) status = try_scheduler(j, &slc_scheduler_one_ahead, SLC_LEAST_MEMORY_TRIES, "one_ahead, least memory");
    if (!status) status = try_scheduler(j, &slc_scheduler_greedy, SLC_LEAST_MEMORY_TRIES, "greedy, least memory");
    return status;
}
