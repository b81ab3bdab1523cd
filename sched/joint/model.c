/* The members that ask the slot model: its answers become orders, for the whole limit and for less, until one is packed
 * within it. joint_test.c covers this file. */
#include "sched/joint/search.h"

#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"
#include "sched/schedulers/slot_order.h"
#include "sched/search/fit_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ORDERS_SHARE = 0.3;   /* of the effort that is left: what orders of the fastest choices may take */
static const double BOUND_SHARE = 0.2;    /* of the effort that was spent: what the bound may take besides it */
static const double LEAST_BOUND_S = 0.05; /* nominal seconds that it may take in any case */
static const double MODEL_GAP = 0.003;    /* share of the step's time at which the solver stops */
static const double BOUND_GAP = 1e-4;     /* the same for the bound, which is lower by so much where it stops there */
static const double ROUGH_GAP = 0.01;     /* the same for less than the whole limit, if packing loses more */
static const double TIGHT = 1.01; /* a plan that is so much slower than the answer that it is made of lacks memory */
enum {
    FIRST_PART = 4,      /* for its first answer the solver has a quarter of the effort that is left, */
    SOLVER_PART = 2,     /* then half of it for each limit, */
    FIT_PART = 8,        /* its order is changed until it fits for an eighth of what is left then, */
    AS_CHOSEN_PART = 8,  /* and the schedulers try its choices for an eighth of the rest */
    SLOT_ROUNDS = 12,    /* most limits for which the model is asked, for one set of allowed strategies */
    EXCESS_STEP = 50,    /* in each round the model gets a further 50th of the limit less than was too much */
    CLOSE_LIMITS = 100,  /* limits that differ by less than a 100th of the limit are not told apart */
    SMALL_EXCESS = 200,  /* an order above the limit by less than a 200th of it is changed until it fits */
    PATIENT_TRIES = 300, /* orders of packing for an answer of the model */
    DEEP_PART = 4,       /* packing loses less of deep jobs, whose buffers are small: limits lie closer together */
    COARSE_RUNS = 4,     /* most runs that a unit is cut into, in the coarse way of writing an answer down */
    FINE_RUNS = 16,      /* the same in all other ways */
    MOST_VARIANTS = 5,   /* ways of writing an answer down */
    FEW_UNITS = 6,       /* free units up to which all of their choices are tried */
    MOST_CHOICES = 81,   /* choices of all of them together up to which they are */
};

/* The choices of a free unit. EXACT: the strategies offered that change no bit; OFFERED: these and onebit; POSSIBLE:
 * these and dp, which bounds are worked out with. dp is not offered, because beside sdp it only saves the start of an
 * operation, but baselines use it, and in short steps that start is a per cent. */
typedef enum { EXACT, OFFERED, POSSIBLE } choice_set;

/* Returns the strategies of each unit, for the caller to free; NULL: there is no memory. With one rank nothing is
 * offered. */
static uint8_t *allowed_strategies(const slc_joint_request *r, choice_set set)
{
    const slc_job *job = r->job;
    uint8_t *allowed = malloc((size_t)job->unit_count + 1);
    for (uint32_t u = 0; allowed && u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        bool is_free = slc_unit_is_free(unit, r->strategies[u]);
        slc_strategy fixed = slc_unit_strategy(job, unit, is_free ? SLC_SDP : r->strategies[u]);
        allowed[u] = (uint8_t)(1 << fixed);
        if (is_free && job->world > 1) allowed[u] = slc_offered_strategies(job, unit, set != EXACT);
        if (is_free && set == POSSIBLE && slc_unit_may_be(job, unit, SLC_DP)) allowed[u] |= 1 << SLC_DP;
    }
    return allowed;
}

static void take_choices(slc_joint_search *j, const slc_slot_solution *solution)
{
    memcpy(j->strategies, solution->strategies, j->request->job->unit_count * sizeof *j->strategies);
    memcpy(j->recompute, solution->recompute, j->request->job->layer_count * sizeof *j->recompute);
}

/* Lists the ways to write an answer down: first coarse ones, which are quickly packed, and for jobs of few units a fine
 * one. */
static uint32_t variants(const slc_joint_request *r, slc_slot_order_options list[MOST_VARIANTS])
{
    uint32_t count = 0, delay = r->times->link.thread_moves ? 0 : 2;
    list[count++] = (slc_slot_order_options){.most_runs = FINE_RUNS, .fuse = true};
    if (delay) list[count++] = (slc_slot_order_options){.most_runs = FINE_RUNS, .update_delay = delay, .fuse = true};
    list[count++] = (slc_slot_order_options){.most_runs = COARSE_RUNS, .fuse = true};
    if (slc_job_splits(r->job))
        list[count++] = (slc_slot_order_options){.most_runs = FINE_RUNS, .fuse = true, .split_ahead = true};
    if (r->job->unit_count <= SLC_FINE_UNITS)
        list[count++] = (slc_slot_order_options){.most_runs = FINE_RUNS, .update_delay = delay};
    return count;
}

/* Writes an answer of the model down in each way. An order that fits by its lifetimes is packed with patience. *excess
 * is the number of bytes by which the smallest plan is above the limit, 0 if one fits; *nearest is its order. *tight
 * becomes true if the job is deep and no plan is about as fast as the answer. */
static sluice_status write_down(slc_joint_search *j, const slc_slot_solution *solution, slc_order *nearest,
                                uint64_t *excess, bool *tight)
{
    slc_slot_order_options list[MOST_VARIANTS];
    uint32_t count = variants(j->request, list);
    uint64_t smallest = UINT64_MAX, limit = j->request->limit;
    sluice_status status = SLUICE_OK;
    take_choices(j, solution);
    for (uint32_t v = 0; !status && v < count; v++) {
        slc_scheduling in = slc_joint_scheduling_of(j);
        slc_order order = {0}, larger;
        slc_plan *plan = NULL;
        slc_forecast forecast;
        uint64_t arena = UINT64_MAX;
        if (v && !slc_joint_affords_plan(j)) break;
        slc_order_from_slots(&in, solution, &list[v], &order);
        status = order.failed ? slc_error(SLUICE_ERR_MEMORY, "order") : SLUICE_OK;
        slc_trying trying = {
            .tries = PATIENT_TRIES, .at_most_s = slc_joint_below_s(j, &slc_scheduler_ilp), .in_time = true};
        if (!status) status = slc_plan_try(&in, &order, &slc_scheduler_ilp, &trying, &plan, &arena, &forecast);
        larger = order;
        if (arena < smallest) {
            smallest = arena;
            larger = *nearest;
            *nearest = order;
        }
        slc_order_fini(&larger);
        const bool slow = !plan || forecast.step_s > TIGHT * solution->step_s;
        if (!status && plan) status = slc_joint_consider(j, plan, &forecast, &slc_scheduler_ilp, "ilp");
        if (!slow || !slc_joint_is_deep(j)) continue;
        *tight = !v; /* other ways need as much memory, and packing takes long then */
        break;
    }
    *excess = smallest > limit && smallest != UINT64_MAX ? smallest - limit : 0;
    return status;
}

/* Changes an order that is a little too large until it fits: gathers go later, reductions earlier. */
static sluice_status fit_nearest(slc_joint_search *j, const slc_slot_solution *solution, slc_order *nearest,
                                 uint64_t *excess)
{
    slc_plan *plan = NULL;
    slc_forecast forecast;
    uint64_t arena = UINT64_MAX;
    take_choices(j, solution);
    slc_scheduling in = slc_joint_scheduling_of(j);
    const double most_s = slc_joint_left_s(j) / FIT_PART;
    sluice_status status =
        slc_fit_order(&in, &slc_scheduler_ilp, j->work->spent_s + most_s, nearest, &plan, &arena, &forecast);
    if (plan) *excess = 0;
    return status || !plan ? status : slc_joint_consider(j, plan, &forecast, &slc_scheduler_ilp, "ilp");
}

/* Makes plans of the model's answer for ask->limit. *excess becomes that of write_down, or 1 if a plan fits that is
 * slow for lack of memory. *feasible becomes false if the model has no answer, or if its answer for less than the whole
 * limit is no faster than the plan that there is. */
static sluice_status try_limit(slc_joint_search *j, slc_slot_request *ask, bool first, uint64_t *excess, bool *feasible)
{
    const bool in_order = ask->recompute != j->request->recompute; /* nothing was left to choose */
    slc_slot_solution solution = {0};
    slc_order nearest = {0};
    ask->effort_s = slc_joint_left_s(j) / (first ? FIRST_PART : SOLVER_PART);
    ask->proves = first && !j->request->times->keeps; /* nobody reads the bound of a later answer */
    ask->gap = ask->limit == j->request->limit || j->request->job->unit_count <= SLC_FINE_UNITS ? MODEL_GAP : ROUGH_GAP;
    *excess = 0;
    sluice_status status = slc_slot_model_solve(ask, &solution);
    j->answer->solver_s += solution.solve_s;
    *feasible = !status && solution.found;
    if (ask->limit == j->request->limit)
        j->bound_s = ask->in_series ? 0 : *feasible ? solution.bound_s : (double)INFINITY;
    if (status == SLUICE_ERR_INTERRUPTED) return status;
    if (status && status != SLUICE_ERR_BUDGET) slc_joint_note_problem(j, status);
    if (first && !status) {
        j->first_bound_s = solution.bound_s;
        j->answer->bound_s = solution.proven_s;
        j->proving_s = solution.proving_s;
    }
    if (first && *feasible) j->answer->model_s = solution.step_s;
    if (status != SLUICE_ERR_MEMORY) status = SLUICE_OK; /* other members replace the model */
    bool hopeless =
        j->list.count && j->bound_s >= j->list.slack * slc_joint_best_s(j); /* no such plan would be of interest */
    /* Plans are hardly faster than the answer that they are made from, and with less memory still, or less effort, the
     * next answer would be no faster. */
    const bool slower = j->list.count && !ask->in_series && *feasible && solution.step_s >= slc_joint_best_s(j);
    if (slower && ask->limit < j->request->limit) *feasible = false;
    if (*feasible && !hopeless) {
        bool tight = false;
        status = write_down(j, &solution, &nearest, excess, &tight);
        if (!status && *excess && *excess < j->request->limit / SMALL_EXCESS)
            status = fit_nearest(j, &solution, &nearest, excess);
        /* It fits, but with less memory the next answer may lose less. */
        if (tight && !*excess && j->request->limit != UINT64_MAX) *excess = 1;
        const double until_s = j->until_s;
        j->until_s = j->work->spent_s + slc_joint_left_s(j) / AS_CHOSEN_PART;
        if (!status && ask->limit == j->request->limit && !in_order && !slc_joint_is_near_bound(j) &&
            !slc_joint_is_deep(j))
            status = slc_joint_try_schedulers(j, "as chosen");
        j->until_s = until_s;
    }
    slc_slot_solution_fini(&solution);
    slc_order_fini(&nearest);
    return status;
}

/* Shares of the limit for which the model is asked, because an order for less memory loses less to packing. */
static const double smaller_limits[] = {1, 0.985, 0.97, 0.955, 0.94, 0.92, 0.9, 0.87, 0.8};
enum { SMALLER_LIMITS = sizeof smaller_limits / sizeof *smaller_limits };

/* Asks the model for orders of the choices looked at, for the whole limit and for less. Without anything to choose it
 * takes little time. */
static sluice_status try_orders(slc_joint_search *j)
{
    const slc_joint_request *r = j->request;
    const double until_s = j->until_s;
    uint8_t *allowed = malloc((size_t)r->job->unit_count + 1), *recompute = malloc((size_t)r->job->layer_count + 1);
    sluice_status status = allowed && recompute ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "plan");
    for (uint32_t u = 0; !status && u < r->job->unit_count; u++) allowed[u] = (uint8_t)(1 << j->strategies[u]);
    for (uint32_t l = 0; !status && l < r->job->layer_count; l++) recompute[l] = j->recompute[l];
    slc_slot_request ask = {.job = r->job,
                            .times = slc_joint_mean_times(r),
                            .allowed = allowed,
                            .recompute = recompute,
                            .work = j->work,
                            .cancel = r->cancel};
    bool feasible = true;
    j->until_s = j->work->spent_s + ORDERS_SHARE * slc_joint_left_s(j);
    for (size_t i = 0; !status && feasible && i < SMALLER_LIMITS; i++) {
        uint64_t excess;
        if (slc_joint_is_near_bound(j) || !slc_joint_affords_plan(j) || (i && r->limit == UINT64_MAX)) break;
        ask.limit = i ? (uint64_t)(smaller_limits[i] * (double)r->limit) : r->limit;
        status = try_limit(j, &ask, false, &excess, &feasible);
    }
    j->until_s = until_s;
    free(recompute);
    free(allowed);
    return status;
}

/* A plan for a smaller budget is a plan for this one. Packing may lose so much at the whole limit that an answer for
 * less memory, whose plan has more room, is faster. Limits go down until the model's bound there is no better than the
 * plan that there is. */
static sluice_status try_smaller_limits(slc_joint_search *j, slc_slot_request *ask)
{
    sluice_status status = SLUICE_OK;
    const double until_s = j->until_s;
    bool feasible = true;
    for (size_t i = 1; !status && feasible && i < SMALLER_LIMITS; i++) {
        uint64_t excess;
        if (slc_joint_is_near_bound(j) || !slc_joint_affords_plan(j)) break;
        ask->limit = (uint64_t)(smaller_limits[i] * (double)j->request->limit);
        j->until_s = j->work->spent_s + slc_joint_left_s(j) / 4; /* the search needs the rest */
        status = try_limit(j, ask, false, &excess, &feasible);
        j->until_s = until_s;
    }
    return status;
}

/* The model's memory rows are a lower bound of what packing needs. So while the packed plan is too large, the model
 * gets that much less memory; once it has no answer, or a plan fits, it gets limits between that one and the last one
 * whose plan was too large. */
static sluice_status try_allowed(slc_joint_search *j, const uint8_t *allowed, bool in_series, bool first)
{
    const slc_joint_request *r = j->request;
    uint8_t *bounded = first ? allowed_strategies(r, POSSIBLE) : NULL;
    if (first && !bounded) return slc_error(SLUICE_ERR_MEMORY, "plan");
    slc_slot_request ask = {.job = r->job,
                            .times = slc_joint_mean_times(r),
                            .allowed = allowed,
                            .bounded = bounded,
                            .recompute = r->recompute,
                            .limit = r->limit,
                            .in_series = in_series,
                            .work = j->work,
                            .cancel = r->cancel};
    const uint32_t part = slc_joint_is_deep(j) ? DEEP_PART : 1;
    uint64_t too_large = 0; /* the least limit whose plan did not fit or lacked memory; 0: none yet */
    uint64_t below = 0;     /* a limit without an answer, or whose plan fits and lacks none; 0: none yet */
    sluice_status status = SLUICE_OK;
    for (uint32_t round = 0; !status && round < SLOT_ROUNDS && slc_joint_affords_plan(j); round++) {
        uint64_t excess;
        bool feasible;
        status = try_limit(j, &ask, first && !round, &excess, &feasible);
        uint64_t less = excess + r->limit / (EXCESS_STEP * part) * (round + 1);
        *(feasible && excess ? &too_large : &below) = ask.limit;
        if (!too_large || (below && too_large - below < r->limit / (CLOSE_LIMITS * part))) break;
        ask.limit = below ? below + (too_large - below) / 2 : too_large - (less < too_large ? less : too_large);
    }
    if (!status && r->limit != UINT64_MAX) status = try_smaller_limits(j, &ask);
    free(bounded);
    return status;
}

static uint8_t nth_choice(uint8_t choices, uint32_t n)
{
    while (n--) choices &= (uint8_t)(choices - 1);
    return choices & (uint8_t)-choices;
}

/* Packing may take more than the model knows, and then other strategies than the model's may be the best. If few units
 * are free, all their choices that the model's bound does not exclude are tried. */
static sluice_status try_every_choice(slc_joint_search *j, uint8_t *allowed)
{
    const slc_joint_request *r = j->request;
    uint32_t units[FEW_UNITS], count = 0, all = 1;
    double until_s = j->until_s;
    uint8_t choices[FEW_UNITS];
    for (uint32_t u = 0; u < r->job->unit_count; u++) {
        if (!(allowed[u] & (allowed[u] - 1))) continue;
        if (count == FEW_UNITS) return SLUICE_OK;
        units[count] = u;
        choices[count++] = allowed[u];
        all *= (uint32_t)__builtin_popcount(allowed[u]);
    }
    sluice_status status = SLUICE_OK;
    if (!count || all > MOST_CHOICES) return status;
    j->until_s = (until_s + j->work->spent_s) / 2; /* the rest is for the search */
    for (uint32_t choice = 0; !status && choice < all && slc_joint_left_s(j) > 0; choice++) {
        for (uint32_t k = 0, rest = choice; k < count; k++) {
            uint32_t of_unit = (uint32_t)__builtin_popcount(choices[k]);
            allowed[units[k]] = nth_choice(choices[k], rest % of_unit);
            rest /= of_unit;
        }
        status = try_allowed(j, allowed, false, false);
    }
    j->until_s = until_s;
    return status;
}

/* With more to choose from, the search takes longer and may find less; and no order may keep link and thread busy all
 * the time, as the model does. So if onebit is a choice, the first model gets two fifths of the effort. Unless the plan
 * is near the bound then, one fifth goes to the model that charges an exchange and its passes one after the other, and
 * the rest to the model without onebit. */
static sluice_status try_all(slc_joint_search *j, const uint8_t *all, const uint8_t *exact)
{
    double until_s = j->until_s, fifth = (until_s - j->work->spent_s) / 5;
    bool differ = memcmp(all, exact, j->request->job->unit_count) != 0;
    if (differ) j->until_s = until_s - 3 * fifth;
    sluice_status status = try_allowed(j, all, false, true);
    if (differ) j->until_s = until_s - 2 * fifth;
    if (!status && differ && !slc_joint_is_near_bound(j)) status = try_allowed(j, all, true, false);
    j->until_s = until_s;
    return status || !differ || slc_joint_is_near_bound(j) ? status : try_allowed(j, exact, false, false);
}

sluice_status slc_joint_try_slot_model(slc_joint_search *j)
{
    uint8_t *all = allowed_strategies(j->request, OFFERED), *exact = allowed_strategies(j->request, EXACT);
    sluice_status status = all && exact ? try_all(j, all, exact) : slc_error(SLUICE_ERR_MEMORY, "plan");
    if (!status) status = try_every_choice(j, all);
    free(exact);
    free(all);
    return status;
}

sluice_status slc_joint_try_orders_of_fastest(slc_joint_search *j)
{
    if (!j->list.count || slc_joint_left_s(j) <= 0) return SLUICE_OK;
    const slc_candidate *best = &j->list.list[0];
    memcpy(j->strategies, best->strategies, j->request->job->unit_count * sizeof *j->strategies);
    memcpy(j->recompute, best->recompute, j->request->job->layer_count * sizeof *j->recompute);
    return try_orders(j);
}

sluice_status slc_joint_prove_bound(slc_joint_search *j)
{
    const slc_joint_request *r = j->request;
    if (!(j->first_bound_s > 0)) return SLUICE_OK;
    j->work->spent_s += j->proving_s;
    uint8_t *allowed = allowed_strategies(r, POSSIBLE);
    if (!allowed) return slc_error(SLUICE_ERR_MEMORY, "plan");
    const slc_slot_request ask = {.job = r->job,
                                  .times = slc_joint_mean_times(r),
                                  .allowed = allowed,
                                  .recompute = r->recompute,
                                  .limit = r->limit,
                                  .effort_s = fmax(BOUND_SHARE * j->answer->effort_s, LEAST_BOUND_S),
                                  .gap = BOUND_GAP,
                                  .work = j->work,
                                  .cancel = r->cancel};
    double relaxed_s, bound_s;
    sluice_status status = slc_slot_model_bound(&ask, &relaxed_s, &bound_s);
    free(allowed);
    if (!status) j->answer->bound_s = fmax(bound_s, j->answer->bound_s);
    if (!status || status == SLUICE_ERR_INTERRUPTED || status == SLUICE_ERR_MEMORY) return status;
    slc_joint_note_problem(j, status);
    return SLUICE_OK;
}
