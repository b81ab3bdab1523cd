/* The members of the joint search and their order: those that give a plan at once come first, those that improve it
 * follow while there is effort left, and while they can win back what they cost. */
#include "sched/joint/joint.h"

#include "ilp/slot_model.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/joint/affordable_run.h"
#include "sched/search/fit_order.h"
#include "sched/joint/growth.h"
#include "sched/joint/least_memory.h"
#include "sched/joint/mixed.h"
#include "sched/search/local_search.h"
#include "sched/search/shortlist.h"
#include "sched/schedulers/partition.h"
#include "sched/schedulers/slot_order.h"
#include "sched/search/update_lane.h"
#include "sched/layout/make_plan.h"
#include "sched/layout/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits of the search. The default of the effort itself is in slc_joint_effort_s. */
static const double WORTH = 4;            /* see worth_s */
static const double NEAR = 1.02;          /* a step within this factor of the model's bound needs no other answer */
static const double SLACK = 1.25;         /* of at most FINE_UNITS units, plans this much slower are searched too */
static const double GROWTH_SHARE = 0.1;   /* of the effort: what each growth of choices may take */
static const double MODEL_SHARE = 0.6;    /* of the effort: by then the slot model ends. Search has the rest, */
static const double DEEP_SHARE = 0.75;    /* which finds little in jobs of more than DEEP layers */
static const double ORDERS_SHARE = 0.3;   /* of the effort that is left: what orders of the fastest choices may take */
static const double MIXTURES_SHARE = 0.3; /* the same: what mixtures may take if there is a model */
static const double BOUND_SHARE = 0.2;    /* of the effort that was spent: what the bound may take besides it */
static const double LEAST_BOUND_S = 0.05; /* nominal seconds that it may take in any case */
static const double MODEL_GAP = 0.003;    /* share of the step's time at which the solver stops */
static const double RUNS_SHARE = 0.06;    /* of the effort: what making one plan of a baseline may take */
static const double ROUGH_GAP = 0.01;     /* the same for less than the whole limit, where packing loses more */
enum {
    DEEP = 128,           /* jobs of more layers have orders that take long to pack: */
    DEEP_BASELINES = 8,   /* they try baselines before the model for an eighth of the effort */
    FINE_UNITS = 16,      /* jobs of at most so many units have plans that are quickly made */
    FIRST_PART = 4,       /* for its first answer the solver has a quarter of the effort that is left, */
    SOLVER_PART = 2,      /* then half of it for each limit, */
    FIT_PART = 8,         /* its order is changed until it fits for an eighth of what is left then, */
    AS_CHOSEN_PART = 8,   /* and the schedulers try its choices for an eighth of the rest */
    SLOT_ROUNDS = 12,     /* most limits for which the model is asked, for one set of allowed strategies */
    EXCESS_STEP = 50,     /* in each round the model gets a further 50th of the limit less than was too much */
    CLOSE_LIMITS = 100,   /* limits that differ by less than a 100th of the limit are not told apart */
    SMALL_EXCESS = 200,   /* an order above the limit by less than a 200th of it is changed until it fits */
    PATIENT_TRIES = 300,  /* orders of packing for an answer of the model */
    COARSE_RUNS = 4,      /* most runs that a unit is cut into, in the coarse way of writing an answer down */
    FINE_RUNS = 16,       /* the same in all other ways */
    MOST_VARIANTS = 5,    /* ways of writing an answer down */
    FEW_UNITS = 6,        /* free units up to which all of their choices are tried */
    MOST_CHOICES = 81,    /* choices of all of them together up to which they are */
    ITEMS_SEARCHED = 500, /* a search begins from about so many items of plans, longer orders from fewer plans */
    MOST_TRIES = 200000,  /* changes that all searches of one round make together */
    SHORT_ORDER = 100,    /* orders of fewer items are searched in more rounds */
};

typedef struct {
    const slc_joint_request *request; /* its work is counted, whether or not the caller asks */
    slc_joint_answer *answer;
    uint64_t start_ns;
    slc_work *work;
    double begun_s, until_s;  /* nominal seconds of `work` */
    double effort_s;          /* what they were at the beginning */
    double least_from_s;      /* until there is a plan, the search for the least memory keeps what comes after them */
    double least_step_s;      /* a step's compute alone: no step is shorter */
    slc_times baseline_times; /* the request's, but for the run that units are cut into; borrows its arrays */
    slc_strategy *strategies; /* choices of the member that is looked at */
    bool *recompute;
    slc_shortlist list;
    /* Bounds of answers of the slot model: of the first one; of the last one within the limit (infinity: it had none).
     * 0: not asked. They guide the search; a plan may do what no answer does, so they are no bounds of plans. */
    double first_bound_s, bound_s;
    double proving_s; /* nominal seconds that the bound of plans has taken, not counted in `work` yet */
    uint64_t least;   /* smallest arena seen */
} joint;

/* The step of the fastest plan; there must be one. */
static double best_s(const joint *j)
{
    return j->list.list[0].forecast.step_s;
}

/* Nominal seconds that planning may take altogether so that the steps that are left can win them back: WORTH times what
 * they would all save with a step as short as the bound proven so far. */
static double worth_s(const joint *j)
{
    if (!j->request->steps_left || !j->list.count) return INFINITY;
    double proven_s = fmax(j->first_bound_s, j->least_step_s);
    return WORTH * (double)j->request->steps_left * fmax(best_s(j) - proven_s, 0);
}

static double end_s(const joint *j)
{
    return j->list.count ? j->until_s : fmin(j->until_s, j->least_from_s);
}

/* Nominal seconds left; at 0 planning ends, and the answer says why. */
static double left_s(joint *j)
{
    double spent_s = j->work->spent_s - j->begun_s, worth = worth_s(j) - spent_s;
    double left = slc_work_is_over(j->work, end_s(j)) ? 0 : fmin(end_s(j) - j->work->spent_s, worth);
    if (left > 0) return left;
    j->answer->ended = j->work->cut ? SLC_PLANNING_TIME_LIMIT
                       : worth <= 0 ? SLC_PLANNING_PAYS_NO_MORE
                                    : SLC_PLANNING_EFFORT;
    return 0;
}

/* Is the effort spent, whatever it is worth? */
static bool is_spent(const joint *j)
{
    return slc_work_is_over(j->work, end_s(j));
}

static bool is_deep(const joint *j)
{
    return j->request->job->layer_count > DEEP;
}

static slc_scheduling scheduling(const joint *j)
{
    return slc_joint_scheduling(j->request, j->strategies, j->recompute);
}

static slc_scheduling baseline_scheduling(const joint *j)
{
    slc_scheduling in = scheduling(j);
    in.times = &j->baseline_times;
    return in;
}

/* Seconds that the step of a plan with the choices looked at must be below to be of interest; 0: any is. */
static double below_s(const joint *j)
{
    return slc_shortlist_below_s(&j->list, j->strategies, j->recompute);
}

/* Takes the plan over if it fits and its step is short enough; else destroys it. */
static sluice_status consider(joint *j, slc_plan *plan, const slc_scheduler *scheduler, const char *member)
{
    const slc_job *job = j->request->job;
    slc_candidate candidate = {.strategies = j->strategies,
                               .recompute = j->recompute,
                               .scheduler = scheduler,
                               .plan = plan,
                               .bound_s = j->bound_s};
    if (plan->arena_bytes < j->least) j->least = plan->arena_bytes;
    sluice_status status = plan->arena_bytes > j->request->limit ? SLUICE_ERR_BUDGET : SLUICE_OK;
    if (!status)
        status = slc_simulate(job, j->request->times, plan, &(slc_simulation){.work = j->work}, &candidate.forecast);
    bool taken = !status && (!below_s(j) || candidate.forecast.step_s < below_s(j));
    slc_work_add(j->work, SLC_WORK_CHECKED, taken ? slc_plan_length(plan) : 0);
    if (taken) status = slc_plan_validate(job, plan);
    if (!taken || status) {
        slc_plan_destroy(plan);
        return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
    }
    if (!j->list.count) j->answer->first_s = slc_seconds(slc_clock_ns() - j->start_ns);
    snprintf(candidate.member, sizeof candidate.member, "%s", member);
    return slc_shortlist_take(&j->list, &candidate);
}

/* ---- Baselines ---- */

/* If runs that saturate the link are too many, baselines cut units into longer ones. */
static void choose_runs(joint *j)
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

static void choose_uniform(joint *j, slc_strategy strategy, bool recompute_free)
{
    const slc_joint_request *r = j->request;
    j->bound_s = 0;
    for (uint32_t u = 0; u < r->job->unit_count; u++) {
        slc_strategy asked = r->strategies[u] != SLC_STRATEGIES ? r->strategies[u] : strategy;
        j->strategies[u] = slc_unit_strategy(r->job, &r->job->units[u], asked);
    }
    for (uint32_t l = 0; l < r->job->layer_count; l++)
        j->recompute[l] = r->recompute && (r->recompute[l] == 1 || (r->recompute[l] == 2 && recompute_free));
}

static bool may_recompute(const slc_joint_request *r)
{
    for (uint32_t l = 0; r->recompute && l < r->job->layer_count; l++)
        if (r->recompute[l] == 2) return true;
    return false;
}

static uint64_t resident_bytes(const joint *j)
{
    uint64_t bytes = 0;
    for (uint32_t u = 0; u < j->request->job->unit_count; u++)
        bytes += slc_resident_bytes(j->request->job, &j->request->job->units[u], j->strategies[u]);
    return bytes;
}

/* Tries a scheduler on the choices looked at. The plan is made from its order, so that one that is too large costs
 * little. */
static sluice_status try_scheduler(joint *j, const slc_scheduler *scheduler, uint32_t tries, const char *member)
{
    slc_scheduling in = baseline_scheduling(j);
    slc_order order = {0};
    slc_plan *plan = NULL;
    uint64_t arena;
    scheduler->train(&in, &order);
    sluice_status status = order.failed ? slc_error(SLUICE_ERR_MEMORY, "order") : SLUICE_OK;
    slc_trying trying = {.tries = tries, .at_most_s = below_s(j), .in_time = tries > 0};
    if (!status) status = slc_plan_try(&in, &order, scheduler, &trying, &plan, &arena);
    slc_order_fini(&order);
    return status || !plan ? status : consider(j, plan, scheduler, member);
}

/* Tries all baseline schedulers on the choices looked at, which `what` names: the first one in any case, the others
 * while there is effort. */
static sluice_status try_schedulers(joint *j, const char *what)
{
    sluice_status status = SLUICE_OK;
    bool tried = false;
    if (resident_bytes(j) > j->request->limit) return SLUICE_OK;
    const slc_scheduler *scheduler;
    for (size_t i = 0; !status && (scheduler = slc_scheduler_at(i)); i++) {
        if (!scheduler->baseline || (tried && is_spent(j))) continue;
        tried = true;
        char member[48];
        snprintf(member, sizeof member, "%s, %s", scheduler->name, what);
        status = try_scheduler(j, scheduler, 0, member);
    }
    return status;
}

static sluice_status try_uniform(joint *j, slc_strategy strategy, bool recompute)
{
    char what[40];
    choose_uniform(j, strategy, recompute);
    snprintf(what, sizeof what, "%s%s",
             slc_strategies_free(j->request->job, j->request->strategies) ? slc_strategy_name(strategy) : "as given",
             recompute ? ", recomputing" : "");
    return try_schedulers(j, what);
}

/* Tries all baselines but those of fsdp if `all`, else those of fsdp alone: one of these fits whenever anything simple
 * does. */
static sluice_status try_baselines(joint *j, bool all)
{
    bool free_units = slc_strategies_free(j->request->job, j->request->strategies), again = may_recompute(j->request);
    int count = free_units && all ? slc_job_strategies(j->request->job) : 1;
    sluice_status status = SLUICE_OK;
    for (int k = all; !status && k < count && !(all && is_spent(j)); k++) {
        status = try_uniform(j, slc_strategies_by_memory[k], false);
        if (!status && again && (!j->list.count || !is_spent(j)))
            status = try_uniform(j, slc_strategies_by_memory[k], true);
    }
    return status;
}

/* ---- Mixtures, where no solver chooses, or its answers lose much to packing ---- */

static bool has_model(const slc_joint_request *r)
{
    return !r->portfolio && slc_slot_model_solver();
}

/* Tries the choices that `mixed` makes for a scheduler, under all schedulers. */
static sluice_status try_mixture(joint *j, const slc_scheduler *scheduler, bool recompute)
{
    uint64_t bytes;
    char what[40];
    choose_uniform(j, SLC_FSDP, recompute);
    slc_scheduling in = baseline_scheduling(j);
    in.strategies = j->request->strategies;
    sluice_status status = slc_mixed_choose(&in, scheduler, j->request->limit, end_s(j), j->strategies, &bytes);
    snprintf(what, sizeof what, "mixed%s", recompute ? ", recomputing" : "");
    return status || bytes > j->request->limit ? status : try_schedulers(j, what);
}

/* Lets the choices of fsdp grow, or those that need least if these do not fit. */
static sluice_status try_grown(joint *j, slc_strategy to)
{
    const double until_s = j->work->spent_s + left_s(j) / 2; /* the rest is for the schedulers */
    uint64_t bytes;
    char what[40];
    bool cut, fits;
    choose_uniform(j, SLC_FSDP, true);
    sluice_status status =
        slc_growth_find(j->request, &slc_scheduler_one_ahead, to, until_s, j->strategies, j->recompute, &fits);
    if (!status && !fits)
        status = slc_least_memory_within(j->request, until_s, j->strategies, j->recompute, &bytes, &cut);
    if (!status && !fits && bytes <= j->request->limit)
        status = slc_growth_find(j->request, &slc_scheduler_one_ahead, to, until_s, j->strategies, j->recompute, &fits);
    snprintf(what, sizeof what, "grown to %s", slc_strategy_name(to));
    return status || !fits ? status : try_schedulers(j, what);
}

/* The choices that growth finds are good to begin with, and cost little. */
static sluice_status try_growth(joint *j)
{
    const double until_s = j->until_s, share_s = GROWTH_SHARE * left_s(j);
    bool any = slc_strategies_free(j->request->job, j->request->strategies) || may_recompute(j->request);
    if (!any || share_s <= 0) return SLUICE_OK;
    j->until_s = j->work->spent_s + share_s;
    sluice_status status = try_grown(j, SLC_SDP);
    j->until_s = fmin(until_s, j->work->spent_s + share_s);
    if (!status && slc_job_strategies(j->request->job) > SLC_ONEBIT && !is_spent(j)) status = try_grown(j, SLC_ONEBIT);
    j->until_s = until_s;
    return status;
}

static sluice_status try_mixtures(joint *j)
{
    const slc_scheduler *scheduler;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0;
         !status && slc_strategies_free(j->request->job, j->request->strategies) && (scheduler = slc_scheduler_at(i));
         i++) {
        if (!scheduler->baseline || (i && left_s(j) <= 0)) continue;
        status = try_mixture(j, scheduler, false);
        if (!status && may_recompute(j->request)) status = try_mixture(j, scheduler, true);
    }
    return status;
}

/* ---- The slot model ---- */

/* `lossy`: onebit is a choice for free units too. With one rank there is nothing to choose. */
static uint8_t *allowed_strategies(const slc_joint_request *r, bool lossy)
{
    const slc_job *job = r->job;
    uint8_t *allowed = malloc((size_t)job->unit_count + 1);
    for (uint32_t u = 0; allowed && u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        bool is_free = slc_unit_is_free(unit, r->strategies[u]);
        slc_strategy fixed = slc_unit_strategy(job, unit, is_free ? SLC_SDP : r->strategies[u]);
        allowed[u] = is_free && job->world > 1 ? slc_offered_strategies(job, unit, lossy) : (uint8_t)(1 << fixed);
    }
    return allowed;
}

static void take_choices(joint *j, const slc_slot_solution *solution)
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
    if (r->job->unit_count <= FINE_UNITS)
        list[count++] = (slc_slot_order_options){.most_runs = FINE_RUNS, .update_delay = delay};
    return count;
}

/* Writes an answer of the model down in each way. An order that fits by its lifetimes is packed with patience. *excess
 * is the number of bytes by which the smallest plan is above the limit, 0 if one fits; *nearest is its order. */
static sluice_status write_down(joint *j, const slc_slot_solution *solution, slc_order *nearest, uint64_t *excess)
{
    slc_slot_order_options list[MOST_VARIANTS];
    uint32_t count = variants(j->request, list);
    uint64_t smallest = UINT64_MAX, limit = j->request->limit;
    sluice_status status = SLUICE_OK;
    take_choices(j, solution);
    for (uint32_t v = 0; !status && v < count; v++) {
        slc_scheduling in = scheduling(j);
        slc_order order = {0}, larger;
        slc_plan *plan = NULL;
        uint64_t arena = UINT64_MAX;
        if (v && left_s(j) <= 0) break;
        slc_order_from_slots(&in, solution, &list[v], &order);
        status = order.failed ? slc_error(SLUICE_ERR_MEMORY, "order") : SLUICE_OK;
        slc_trying trying = {.tries = PATIENT_TRIES, .at_most_s = below_s(j), .in_time = true};
        if (!status) status = slc_plan_try(&in, &order, &slc_scheduler_ilp, &trying, &plan, &arena);
        larger = order;
        if (arena < smallest) {
            smallest = arena;
            larger = *nearest;
            *nearest = order;
        }
        slc_order_fini(&larger);
        if (!status && plan) status = consider(j, plan, &slc_scheduler_ilp, "ilp");
    }
    *excess = smallest > limit && smallest != UINT64_MAX ? smallest - limit : 0;
    return status;
}

/* Changes an order that is a little too large until it fits: gathers go later, reductions earlier. */
static sluice_status fit_nearest(joint *j, const slc_slot_solution *solution, slc_order *nearest, uint64_t *excess)
{
    slc_plan *plan = NULL;
    uint64_t arena = UINT64_MAX;
    take_choices(j, solution);
    slc_scheduling in = scheduling(j);
    const double most_s = left_s(j) / FIT_PART;
    sluice_status status = slc_fit_order(&in, &slc_scheduler_ilp, j->work->spent_s + most_s, nearest, &plan, &arena);
    if (plan) *excess = 0;
    return status || !plan ? status : consider(j, plan, &slc_scheduler_ilp, "ilp");
}

static void note_problem(joint *j, sluice_status status)
{
    snprintf(j->answer->note, sizeof j->answer->note, "planning was cut short (%s: %.140s)", sluice_status_name(status),
             sluice_last_error());
}

static bool is_near_bound(const joint *j)
{
    return j->list.count && best_s(j) <= NEAR * j->first_bound_s;
}

/* Makes plans of the model's answer for ask->limit. *excess is that of write_down; *feasible: the model has an answer
 * at all. */
static sluice_status try_limit(joint *j, slc_slot_request *ask, bool first, uint64_t *excess, bool *feasible)
{
    const bool in_order = ask->recompute != j->request->recompute; /* nothing was left to choose */
    slc_slot_solution solution = {0};
    slc_order nearest = {0};
    ask->effort_s = left_s(j) / (first ? FIRST_PART : SOLVER_PART);
    ask->gap = ask->limit == j->request->limit || j->request->job->unit_count <= FINE_UNITS ? MODEL_GAP : ROUGH_GAP;
    *excess = 0;
    sluice_status status = slc_slot_model_solve(ask, &solution);
    j->answer->solver_s += solution.solve_s;
    *feasible = !status && solution.found;
    if (ask->limit == j->request->limit)
        j->bound_s = ask->in_series ? 0 : *feasible ? solution.bound_s : (double)INFINITY;
    if (status == SLUICE_ERR_INTERRUPTED) return status;
    if (status && status != SLUICE_ERR_BUDGET) note_problem(j, status);
    if (first && !status) {
        j->first_bound_s = solution.bound_s;
        j->answer->bound_s = solution.proven_s;
        j->proving_s = solution.proving_s;
    }
    if (first && *feasible) j->answer->model_s = solution.step_s;
    if (status != SLUICE_ERR_MEMORY) status = SLUICE_OK;                      /* other members replace the model */
    bool hopeless = j->list.count && j->bound_s >= j->list.slack * best_s(j); /* no such plan would be of interest */
    bool slower = j->list.count && !ask->in_series && *feasible && solution.bound_s >= best_s(j);
    if (slower && ask->limit < j->request->limit) *feasible = false; /* nor would any for less memory still */
    if (*feasible && !hopeless) {
        status = write_down(j, &solution, &nearest, excess);
        if (!status && *excess && *excess < j->request->limit / SMALL_EXCESS)
            status = fit_nearest(j, &solution, &nearest, excess);
        const double until_s = j->until_s;
        j->until_s = j->work->spent_s + left_s(j) / AS_CHOSEN_PART;
        if (!status && ask->limit == j->request->limit && !in_order && !is_near_bound(j) && !is_deep(j))
            status = try_schedulers(j, "as chosen");
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
static sluice_status try_orders(joint *j)
{
    const slc_joint_request *r = j->request;
    const double until_s = j->until_s;
    uint8_t *allowed = malloc((size_t)r->job->unit_count + 1), *recompute = malloc((size_t)r->job->layer_count + 1);
    sluice_status status = allowed && recompute ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "plan");
    for (uint32_t u = 0; !status && u < r->job->unit_count; u++) allowed[u] = (uint8_t)(1 << j->strategies[u]);
    for (uint32_t l = 0; !status && l < r->job->layer_count; l++) recompute[l] = j->recompute[l];
    slc_slot_request ask = {.job = r->job,
                            .times = r->times,
                            .allowed = allowed,
                            .recompute = recompute,
                            .work = j->work,
                            .cancel = r->cancel};
    bool feasible = true;
    j->until_s = j->work->spent_s + ORDERS_SHARE * left_s(j);
    for (size_t i = 0; !status && feasible && i < SMALLER_LIMITS; i++) {
        uint64_t excess;
        if (is_near_bound(j) || left_s(j) <= 0 || (i && r->limit == UINT64_MAX)) break;
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
static sluice_status try_smaller_limits(joint *j, slc_slot_request *ask)
{
    sluice_status status = SLUICE_OK;
    const double until_s = j->until_s;
    bool feasible = true;
    for (size_t i = 1; !status && feasible && i < SMALLER_LIMITS; i++) {
        uint64_t excess;
        if (is_near_bound(j) || left_s(j) <= 0) break;
        ask->limit = (uint64_t)(smaller_limits[i] * (double)j->request->limit);
        j->until_s = j->work->spent_s + left_s(j) / 4; /* the search needs the rest */
        status = try_limit(j, ask, false, &excess, &feasible);
        j->until_s = until_s;
    }
    return status;
}

/* The model's memory rows are a lower bound of what packing needs. So while the packed plan is too large, the model
 * gets that much less memory; once it has no answer, or a plan fits, it gets limits between that one and the last one
 * whose plan was too large. */
static sluice_status try_allowed(joint *j, const uint8_t *allowed, bool in_series, bool first)
{
    const slc_joint_request *r = j->request;
    slc_slot_request ask = {.job = r->job,
                            .times = r->times,
                            .allowed = allowed,
                            .recompute = r->recompute,
                            .limit = r->limit,
                            .proves = first,
                            .in_series = in_series,
                            .work = j->work,
                            .cancel = r->cancel};
    uint64_t too_large = 0; /* the least limit whose plan did not fit; 0: none yet */
    uint64_t below = 0;     /* a limit without an answer, or whose plan fits; 0: none yet */
    sluice_status status = SLUICE_OK;
    for (uint32_t round = 0; !status && round < SLOT_ROUNDS && left_s(j) > 0; round++) {
        uint64_t excess;
        bool feasible;
        status = try_limit(j, &ask, first && !round, &excess, &feasible);
        uint64_t less = excess + r->limit / EXCESS_STEP * (round + 1);
        *(feasible && excess ? &too_large : &below) = ask.limit;
        if (!too_large || (below && too_large - below < r->limit / CLOSE_LIMITS)) break;
        ask.limit = below ? below + (too_large - below) / 2 : too_large - (less < too_large ? less : too_large);
    }
    return status || r->limit == UINT64_MAX ? status : try_smaller_limits(j, &ask);
}

static uint8_t nth_choice(uint8_t choices, uint32_t n)
{
    while (n--) choices &= (uint8_t)(choices - 1);
    return choices & (uint8_t)-choices;
}

/* Packing may take more than the model knows, and then other strategies than the model's may be the best. If few units
 * are free, all their choices that the model's bound does not exclude are tried. */
static sluice_status try_every_choice(joint *j, uint8_t *allowed)
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
    for (uint32_t choice = 0; !status && choice < all && left_s(j) > 0; choice++) {
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
static sluice_status try_all(joint *j, const uint8_t *all, const uint8_t *exact)
{
    double until_s = j->until_s, fifth = (until_s - j->work->spent_s) / 5;
    bool differ = memcmp(all, exact, j->request->job->unit_count) != 0;
    if (differ) j->until_s = until_s - 3 * fifth;
    sluice_status status = try_allowed(j, all, false, true);
    if (differ) j->until_s = until_s - 2 * fifth;
    if (!status && differ && !is_near_bound(j)) status = try_allowed(j, all, true, false);
    j->until_s = until_s;
    return status || !differ || is_near_bound(j) ? status : try_allowed(j, exact, false, false);
}

static sluice_status try_slot_model(joint *j)
{
    uint8_t *all = allowed_strategies(j->request, true), *exact = allowed_strategies(j->request, false);
    sluice_status status = all && exact ? try_all(j, all, exact) : slc_error(SLUICE_ERR_MEMORY, "plan");
    if (!status) status = try_every_choice(j, all);
    free(exact);
    free(all);
    return status;
}

/* Tries orders of the fastest plan's choices. */
static sluice_status try_orders_of_fastest(joint *j)
{
    if (!j->list.count || left_s(j) <= 0) return SLUICE_OK;
    const slc_candidate *best = &j->list.list[0];
    memcpy(j->strategies, best->strategies, j->request->job->unit_count * sizeof *j->strategies);
    memcpy(j->recompute, best->recompute, j->request->job->layer_count * sizeof *j->recompute);
    return try_orders(j);
}

/* If nothing else fits, tries the choices that need least under the schedulers that need little. */
static sluice_status try_least_memory(joint *j)
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

/* ---- Local search ---- */

/* Takes a quarter of the effort that is left; the search goes on from there. */
static sluice_status place_updates(joint *j)
{
    slc_updates updates = j->request->updates;
    sluice_status status = SLUICE_OK;
    if (j->request->quick && updates == SLC_UPDATES_AUTO) return SLUICE_OK;
    double begin_s = j->work->spent_s, quarter = left_s(j) / 4;
    for (uint32_t i = 0; !status && i < j->list.count; i++) {
        slc_candidate *c = &j->list.list[i];
        slc_scheduling in = slc_joint_scheduling(j->request, c->strategies, c->recompute);
        double until_s = updates == SLC_UPDATES_AUTO ? begin_s + quarter / j->list.count * (i + 1) : INFINITY;
        if (updates != SLC_UPDATES_AUTO || quarter > 0)
            status = slc_updates_place(&in, c->scheduler, updates, until_s, &c->plan, &c->forecast);
    }
    slc_shortlist_sort(&j->list);
    return status;
}

static sluice_status search_from(const joint *j, slc_candidate *from, double until_s, uint32_t tries, uint64_t seed)
{
    slc_scheduling in = slc_joint_scheduling(j->request, from->strategies, from->recompute);
    uint32_t items = from->plan->train.item_count;
    slc_search_options options = {.until_s = until_s,
                                  .most_tries = tries,
                                  .patience = 200 + 2 * items + 40000 / items,
                                  .rounds = items < SHORT_ORDER ? 30 : 6,
                                  .lanes = j->request->updates == SLC_UPDATES_AUTO &&
                                           in.times->update_compute_s_per_element > 0,
                                  .seed = seed};
    double before = from->forecast.step_s;
    sluice_status status = slc_search_order(&in, from->scheduler, &options, &from->plan, &from->forecast, NULL);
    size_t length = strlen(from->member);
    if (!status && from->forecast.step_s < before && !strstr(from->member, ", searched"))
        snprintf(from->member + length, sizeof from->member - length, ", searched");
    return status;
}

/* Searches from several plans for two fifths of the effort, from the faster quarter of them for two fifths of what is
 * left, and so on; from the last one for all of the rest. */
static sluice_status improve(joint *j)
{
    slc_shortlist *list = &j->list;
    uint32_t tries = j->request->tries ? j->request->tries : MOST_TRIES;
    sluice_status status = SLUICE_OK;
    uint64_t seed = 1;
    uint32_t count = list->count ? ITEMS_SEARCHED / (list->list[0].plan->train.item_count + 1) + 1 : 0;
    if (count > list->count) count = list->count;
    for (; !status && count && left_s(j) > 0; count = count > 1 ? (count + 3) / 4 : 0, seed++) {
        double begin_s = j->work->spent_s, left = left_s(j);
        if (count > 1) left = left / 5 * 2;
        for (uint32_t i = 0; !status && i < count; i++) {
            slc_candidate *from = &list->list[i];
            bool open = from->bound_s < best_s(j); /* a search from there may end faster than the fastest */
            if (open && from->plan->train.item_count > 1)
                status = search_from(j, from, begin_s + left / count * (i + 1), tries / count, seed);
        }
        slc_shortlist_sort(list);
    }
    return status;
}

/* On one rank nothing is sharded. Without recomputation no more than where updates run is left to choose. */
static bool has_choices(const slc_joint_request *r)
{
    return r->job->world > 1 || may_recompute(r);
}

/* A simple plan that fits is all that there is to find. */
static bool is_trivial(const joint *j)
{
    return j->list.count && !has_choices(j->request);
}

/* Tries the mixture of the scheduler that plans most quickly, for a tenth of the effort. So there is a plan near the
 * budget, however much the model's answers lose to packing. */
static sluice_status try_quick_mixture(joint *j)
{
    double until_s = j->until_s;
    if (!slc_strategies_free(j->request->job, j->request->strategies)) return SLUICE_OK;
    j->until_s = j->work->spent_s + left_s(j) / 10;
    sluice_status status = try_mixture(j, &slc_scheduler_one_ahead, false);
    if (!status && may_recompute(j->request) && !is_spent(j)) status = try_mixture(j, &slc_scheduler_one_ahead, true);
    j->until_s = until_s;
    return status;
}

static sluice_status find_plan(joint *j)
{
    const bool search = !j->request->quick, asks = search && has_model(j->request);
    const bool deep = asks && is_deep(j) && has_choices(j->request);
    const double until_s = j->until_s;
    /* Packing the orders of many layers takes long. So the model is asked early, and baselines go on with what effort
     * it leaves. */
    if (deep) j->until_s = j->begun_s + (until_s - j->begun_s) / DEEP_BASELINES;
    sluice_status status = try_baselines(j, false);
    j->until_s = until_s;
    if (!status && asks && !is_trivial(j)) status = try_quick_mixture(j);
    if (!status && search && !is_trivial(j)) status = try_growth(j);
    if (!status && asks && !is_trivial(j)) {
        j->until_s = j->begun_s + (deep ? DEEP_SHARE : MODEL_SHARE) * (until_s - j->begun_s);
        status = try_slot_model(j);
        j->until_s = until_s;
    }
    if (!status && deep && !is_near_bound(j) && !is_spent(j)) status = try_baselines(j, false);
    if (!status) status = try_baselines(j, true);
    if (!status && asks && !is_trivial(j) && !is_near_bound(j)) status = try_orders_of_fastest(j);
    if (asks) j->until_s = j->work->spent_s + MIXTURES_SHARE * left_s(j);
    if (!status && (!has_model(j->request) || (search && !is_trivial(j) && !is_near_bound(j))))
        status = try_mixtures(j);
    j->until_s = until_s;
    if (!status && !j->list.count) status = try_least_memory(j);
    if (!status) status = place_updates(j);
    if (!status && search && !is_trivial(j)) status = improve(j);
    if (status == SLUICE_ERR_FORMAT && j->list.count) { /* a defect of ours; the plans that were found stay good */
        note_problem(j, status);
        status = SLUICE_OK;
    }
    if (!status && !j->list.count)
        status =
            slc_error(SLUICE_ERR_BUDGET, "no plan needs less than %llu bytes", (unsigned long long)j->request->limit);
    return status;
}

/* Works out the bound that the answer tells, if the model was asked: one of all valid plans. */
static sluice_status prove_bound(joint *j)
{
    const slc_joint_request *r = j->request;
    if (!(j->first_bound_s > 0)) return SLUICE_OK;
    j->work->spent_s += j->proving_s;
    if (is_deep(j)) return SLUICE_OK; /* no program has all positions of so many layers; prices have given the bound */
    uint8_t *allowed = allowed_strategies(r, true);
    if (!allowed) return slc_error(SLUICE_ERR_MEMORY, "plan");
    const slc_slot_request ask = {.job = r->job,
                                  .times = r->times,
                                  .allowed = allowed,
                                  .recompute = r->recompute,
                                  .limit = r->limit,
                                  .effort_s = fmax(BOUND_SHARE * j->answer->effort_s, LEAST_BOUND_S),
                                  .gap = MODEL_GAP,
                                  .work = j->work,
                                  .cancel = r->cancel};
    double relaxed_s, bound_s;
    sluice_status status = slc_slot_model_bound(&ask, &relaxed_s, &bound_s);
    free(allowed);
    if (!status) j->answer->bound_s = fmax(bound_s, j->answer->bound_s);
    if (!status || status == SLUICE_ERR_INTERRUPTED || status == SLUICE_ERR_MEMORY) return status;
    note_problem(j, status);
    return SLUICE_OK;
}

static void answer_with(const joint *j, slc_candidate *best)
{
    j->answer->plan = best->plan;
    best->plan = NULL;
    j->answer->plan->schedule = has_model(j->request) ? slc_scheduler_ilp.name : slc_scheduler_portfolio.name;
    j->answer->forecast = best->forecast;
    memcpy(j->answer->member, best->member, sizeof best->member);
}

/* Nominal seconds: one for what people train today, five for the deepest models; twice that with recomputation to
 * choose. */
double slc_joint_effort_s(const slc_joint_request *r)
{
    if (r->effort_s > 0) return r->effort_s;
    double layers = r->job->layer_count, seconds = layers <= 48 ? 0.9 : 0.9 + (layers - 48) * (3.6 / 78);
    return (seconds < 4.5 ? seconds : 4.5) * (may_recompute(r) ? 2 : 1);
}

static double compute_s(const slc_joint_request *r)
{
    double sum_s = 0;
    for (uint32_t s = 0; s < slc_job_slots(r->job); s++) sum_s += r->times->slot_s[s];
    return sum_s * r->job->micro_batches;
}

sluice_status slc_joint_plan(const slc_joint_request *request, slc_joint_answer *answer, uint64_t *least)
{
    size_t units = (size_t)request->job->unit_count + 1, layers = (size_t)request->job->layer_count + 1;
    slc_work own = {0};
    slc_joint_request counted = *request;
    if (!counted.work) counted.work = &own;
    joint j = {.request = &counted,
               .answer = answer,
               .start_ns = slc_clock_ns(),
               .work = counted.work,
               .least_step_s = compute_s(request),
               .strategies = calloc(units, sizeof *j.strategies),
               .recompute = calloc(layers, sizeof *j.recompute),
               .list = {.job = request->job, .slack = request->job->unit_count <= FINE_UNITS ? SLACK : 1},
               .least = UINT64_MAX};
    j.begun_s = j.work->spent_s;
    j.effort_s = slc_joint_effort_s(request);
    j.until_s = j.begun_s + j.effort_s;
    j.least_from_s = j.until_s - fmin(slc_least_memory_share_s(j.effort_s), j.effort_s / 2);
    *answer = (slc_joint_answer){0};
    choose_runs(&j);
    sluice_status status = SLUICE_ERR_MEMORY;
    if (j.strategies && j.recompute)
        status = find_plan(&j);
    else
        slc_error(status, "plan");
    answer->ended = is_trivial(&j) ? SLC_PLANNING_TRIVIAL : SLC_PLANNING_DONE;
    if (!request->quick && !is_trivial(&j)) left_s(&j);
    answer->effort_s = j.work->spent_s - j.begun_s;
    if (!status) status = prove_bound(&j);
    if (slc_cancelled(request->cancel)) status = slc_cancel_check(request->cancel); /* whatever it came to meanwhile */
    if (!status) answer_with(&j, &j.list.list[0]);
    answer->total_s = slc_seconds(slc_clock_ns() - j.start_ns);
    if (least) *least = j.least;
    free(j.strategies);
    free(j.recompute);
    slc_shortlist_fini(&j.list);
    return status;
}
