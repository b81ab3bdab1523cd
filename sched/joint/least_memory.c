/* Candidates are the slot model's own minimum (without a solver: the result of a search over single units) and the
 * simple mixtures. Each is packed; the smallest wins and is packed again with more tries.
 * joint_test.c covers this file. */
#include "sched/joint/least_memory.h"

#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/joint/mixed.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 4 };
static const double MODEL_S = 2; /* nominal seconds for the model's own minimum */

typedef struct {
    const slc_joint_request *request;
    slc_strategy *strategies; /* of the candidate */
    bool *recompute;
    slc_strategy *best_strategies;
    bool *best_recompute;
    uint64_t best;
    double until_s; /* nominal seconds of the request's work */
    bool cut;
} smallest;

/* Returns true if it is time to end, which it never is before anything was found. */
static bool is_over(smallest *s)
{
    bool over = s->best != UINT64_MAX && slc_work_is_over(s->request->work, s->until_s);
    s->cut |= over;
    return over;
}

/* Measures the candidate and keeps it if it is the smallest so far. Serial needs the least memory, except in odd cases
 * of packing, and for dp and oss with reductions in each micro-batch; then one_ahead may. */
static sluice_status weigh_choices(smallest *s)
{
    static const slc_scheduler *const schedulers[] = {&slc_scheduler_serial, &slc_scheduler_one_ahead};
    const slc_job *job = s->request->job;
    slc_scheduling in = slc_joint_scheduling(s->request, s->strategies, s->recompute);
    in.limit = UINT64_MAX;
    for (int k = 0; k < 2 && !is_over(s); k++) {
        uint64_t bytes;
        sluice_status status = slc_plan_measure(&in, schedulers[k], s->best - 1, &bytes);
        if (status) return status;
        if (bytes >= s->best) continue;
        s->best = bytes;
        memcpy(s->best_strategies, s->strategies, job->unit_count * sizeof *s->strategies);
        memcpy(s->best_recompute, s->recompute, job->layer_count * sizeof *s->recompute);
    }
    return SLUICE_OK;
}

/* Packs the winner as tightly as the joint plan would. The course of packing depends on its limit, so an arena found
 * under a higher limit may not be found again when that size is asked for. Therefore a limit counts only if the plan
 * was packed under it. */
static sluice_status press_winner(smallest *s, const slc_scheduler *scheduler)
{
    slc_scheduling in = slc_joint_scheduling(s->request, s->best_strategies, s->best_recompute);
    slc_trying trying = {.tries = SLC_LEAST_MEMORY_TRIES};
    slc_order order = {0};
    uint64_t too_low = 0;
    in.limit = s->best - 1;
    scheduler->train(&in, &order);
    sluice_status status = order.failed ? slc_error(SLUICE_ERR_MEMORY, "order") : SLUICE_OK;
    for (int round = 0; !status && in.limit > too_low && round < ROUNDS && !is_over(s); round++) {
        slc_plan *plan;
        uint64_t arena;
        status = slc_plan_try(&in, &order, scheduler, &trying, &plan, &arena, NULL);
        if (plan)
            s->best = in.limit;
        else
            too_low = in.limit;
        uint64_t halfway = too_low + (s->best - too_low) / 128 * 64; /* not above too_low: there is no other limit */
        in.limit = plan && arena > too_low && arena < s->best ? arena : halfway;
        slc_plan_destroy(plan);
    }
    slc_order_fini(&order);
    return status;
}

static sluice_status weigh_uniform(smallest *s, slc_strategy strategy)
{
    const slc_joint_request *r = s->request;
    for (uint32_t u = 0; u < r->job->unit_count; u++)
        s->strategies[u] = slc_unit_strategy(r->job, &r->job->units[u],
                                             r->strategies[u] == SLC_STRATEGIES ? strategy : r->strategies[u]);
    return weigh_choices(s);
}

static sluice_status weigh_mixture(smallest *s, const slc_scheduler *scheduler)
{
    slc_scheduling in = slc_joint_scheduling(s->request, s->request->strategies, s->recompute);
    in.limit = UINT64_MAX;
    uint64_t bytes;
    sluice_status status = slc_mixed_smallest(&in, scheduler, UINT64_MAX - 1, s->until_s, s->strategies, &bytes);
    return status ? status : weigh_choices(s);
}

/* Asks the slot model for the least memory, with the strategies that planners offer to each unit: others keep more, and
 * onebit keeps most. */
static sluice_status weigh_model(smallest *s)
{
    const slc_joint_request *r = s->request;
    uint8_t *allowed = malloc((size_t)r->job->unit_count + 1);
    if (!allowed) return slc_error(SLUICE_ERR_MEMORY, "plan");
    for (uint32_t u = 0; u < r->job->unit_count; u++) {
        const slc_unit *unit = &r->job->units[u];
        allowed[u] = slc_unit_is_free(unit, r->strategies[u])
                         ? slc_offered_strategies(r->job, unit, false)
                         : (uint8_t)(1 << slc_unit_strategy(r->job, unit, r->strategies[u]));
    }
    slc_slot_request ask = {.job = r->job,
                            .times = r->times,
                            .allowed = allowed,
                            .recompute = r->recompute,
                            .effort_s = fmin(MODEL_S, s->until_s - r->work->spent_s),
                            .work = r->work,
                            .gap = 0.003,
                            .cancel = r->cancel};
    slc_slot_solution solution = {0};
    uint64_t limit;
    sluice_status status = slc_slot_model_least_memory(&ask, &limit, &solution);
    if (!status && solution.found) {
        memcpy(s->strategies, solution.strategies, r->job->unit_count * sizeof *s->strategies);
        memcpy(s->recompute, solution.recompute, r->job->layer_count * sizeof *s->recompute);
        status = weigh_choices(s);
    } else if (status != SLUICE_ERR_MEMORY && status != SLUICE_ERR_INTERRUPTED) {
        status = SLUICE_OK; /* the mixtures replace it */
    }
    slc_slot_solution_fini(&solution);
    free(allowed);
    return status;
}

/* Replaces the model: each free unit in turn takes the other one of sdp and fsdp if that needs less. For example, a
 * table that is gathered at the fullest moment needs less under sdp. */
static sluice_status weigh_changes(smallest *s)
{
    const slc_job *job = s->request->job;
    uint64_t before = 0;
    sluice_status status = SLUICE_OK;
    for (int pass = 0; !status && pass < ROUNDS && s->best != before; pass++) {
        before = s->best;
        for (uint32_t u = 0; !status && u < job->unit_count && !is_over(s); u++) {
            if (!slc_unit_is_free(&job->units[u], s->request->strategies[u])) continue;
            memcpy(s->strategies, s->best_strategies, job->unit_count * sizeof *s->strategies);
            memcpy(s->recompute, s->best_recompute, job->layer_count * sizeof *s->recompute);
            s->strategies[u] =
                slc_unit_strategy(job, &job->units[u], s->strategies[u] == SLC_FSDP ? SLC_SDP : SLC_FSDP);
            status = weigh_choices(s);
        }
    }
    return status;
}

static sluice_status weigh_all(smallest *s)
{
    const bool has_model = !s->request->portfolio && slc_slot_model_solver();
    sluice_status status = SLUICE_OK;
    for (uint32_t l = 0; l < s->request->job->layer_count; l++)
        s->recompute[l] = s->request->recompute && s->request->recompute[l];
    for (int k = 0; !status && k < SLC_EXACT_STRATEGIES; k++) status = weigh_uniform(s, slc_strategies_by_memory[k]);
    if (!status && !is_over(s)) status = weigh_mixture(s, &slc_scheduler_serial);
    if (!status && !is_over(s)) status = weigh_mixture(s, &slc_scheduler_one_ahead);
    if (!status && !is_over(s)) status = has_model ? weigh_model(s) : weigh_changes(s);
    if (!status) status = press_winner(s, &slc_scheduler_serial);
    return status ? status : press_winner(s, &slc_scheduler_one_ahead);
}

sluice_status slc_least_memory_within(const slc_joint_request *request, double until_s, slc_strategy *strategies,
                                      bool *recompute, uint64_t *arena_bytes, bool *cut)
{
    const slc_job *job = request->job;
    slc_work own = {0};
    slc_joint_request counted = *request;
    if (!counted.work) counted.work = &own;
    smallest s = {.request = &counted,
                  .strategies = calloc((size_t)job->unit_count + 1, sizeof *s.strategies),
                  .recompute = calloc((size_t)job->layer_count + 1, sizeof *s.recompute),
                  .best_strategies = strategies,
                  .best_recompute = recompute,
                  .best = UINT64_MAX,
                  .until_s = until_s};
    sluice_status status = s.strategies && s.recompute ? weigh_all(&s) : slc_error(SLUICE_ERR_MEMORY, "plan");
    *arena_bytes = s.best;
    *cut = s.cut;
    free(s.strategies);
    free(s.recompute);
    return status;
}

sluice_status slc_least_memory(const slc_joint_request *request, slc_strategy *strategies, bool *recompute,
                               uint64_t *arena_bytes)
{
    bool cut;
    return slc_least_memory_within(request, INFINITY, strategies, recompute, arena_bytes, &cut);
}
