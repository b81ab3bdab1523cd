/* The planner: reads the request, resolves the budget, fills what the request leaves open, makes the plan and holds it
 * against the budget. With the schedules "ilp" and "portfolio" strategies and schedule are chosen together (joint.c).
 */
#include "sched/planner.h"

#include "ilp/slot_model.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "sched/planner/distance.h"
#include "sched/joint/joint.h"
#include "sched/planner/kept.h"
#include "sched/joint/mixed.h"
#include "sched/planner/parts.h"
#include "sched/search/update_lane.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Share of the planning effort for which the model may be asked what a plan's distance to the bound is made of. */
static const double DISTANCE_SHARE = 0.04;
/* Share of it that a refusal may take in any case to find what other strategies need. */
static const double LEAST_SHARE = 0.1;

typedef struct {
    const slc_job *job;
    const slc_plan_request *request;
    slc_plan_answer *answer;
    const slc_scheduler *scheduler;
    const slc_times *times;
    slc_times estimated;
    slc_work work;
    slc_strategy *strategies, *scratch; /* [units] */
    bool *recompute;                    /* [L] what is forced; free layers do not */
} planning;

static sluice_status find_scheduler(const char *name, const slc_scheduler **out)
{
    *out = name ? slc_scheduler_find(name) : NULL;
    if (*out == &slc_scheduler_ilp && !slc_slot_model_solver())
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "schedule \"ilp\": this build has no GLPK, whose integer program it is; choose one of %s",
                         slc_scheduler_names());
    if (*out) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "schedule \"%s\" does not exist; choose one of %s", name ? name : "",
                     slc_scheduler_names());
}

static slc_scheduling scheduling(planning *p, const slc_strategy *strategies)
{
    return (slc_scheduling){.job = p->job,
                            .strategies = strategies,
                            .recompute = p->recompute,
                            .times = p->times,
                            .limit = UINT64_MAX,
                            .cancel = p->request->cancel,
                            .work = &p->work};
}

static sluice_status measure_dp(planning *p)
{
    for (uint32_t u = 0; u < p->job->unit_count; u++)
        p->scratch[u] = slc_unit_strategy(p->job, &p->job->units[u], SLC_DP);
    slc_scheduling in = scheduling(p, p->scratch);
    in.recompute = NULL;
    sluice_status status = slc_plan_measure(&in, &slc_scheduler_serial, UINT64_MAX, &p->answer->dp_bytes);
    p->answer->dp_bytes += p->job->reserved_bytes;
    return status;
}

static sluice_status resolve_budget(const slc_plan_request *request, slc_plan_answer *answer)
{
    double fraction = request->budget_of_dp;
    answer->budget_bytes = request->budget_bytes;
    if (!isfinite(fraction) || fraction < 0)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "budget: %g of the least that dp works in is no size; give a fraction above 0", fraction);
    if (fraction == 0) return SLUICE_OK;
    double bytes = fraction * (double)answer->dp_bytes;
    /* 1: zero would mean that there is no budget. */
    answer->budget_bytes = bytes < 1 ? 1 : bytes < 0x1p62 ? (uint64_t)bytes : UINT64_C(1) << 62;
    return SLUICE_OK;
}

static uint64_t limit_of(const planning *p)
{
    uint64_t budget = p->answer->budget_bytes, reserved = p->job->reserved_bytes;
    return !budget ? UINT64_MAX : budget > reserved ? budget - reserved : 0;
}

/* Returns the most memory that the plan may take. A user who asks for sharding and names no budget wants no more than
 * dp takes: gathers that come early may use that much. A plan that cannot do with so little takes what it needs. */
static uint64_t bound_of(const planning *p)
{
    bool shards = false;
    if (p->answer->budget_bytes) return limit_of(p);
    for (uint32_t u = 0; u < p->job->unit_count; u++) {
        if (p->strategies[u] == SLC_STRATEGIES) return UINT64_MAX;
        shards |= p->strategies[u] != slc_unit_strategy(p->job, &p->job->units[u], SLC_DP);
    }
    return shards ? p->answer->dp_bytes - p->job->reserved_bytes : UINT64_MAX;
}

static sluice_status fill_free_units(planning *p)
{
    if (!slc_strategies_free(p->job, p->strategies)) return SLUICE_OK;
    uint64_t bytes;
    for (uint32_t u = 0; u < p->job->unit_count; u++) p->scratch[u] = p->strategies[u];
    slc_scheduling in = scheduling(p, p->scratch);
    return slc_mixed_choose(&in, p->scheduler, limit_of(p), INFINITY, p->strategies, &bytes);
}

static void note_forecast(const planning *p, const slc_forecast *f)
{
    slc_plan_forecast *out = &p->answer->forecast;
    out->step_s = f->step_s;
    out->exposed_s = f->exposed_s;
    out->compute_s = f->compute_s;
    out->communication_s = f->communication_s;
    out->outside_s = f->outside_s;
}

/* Plans are made for slots and communication alone: what lies outside of slots, and that ranks come late, is the same
 * under every plan. Here it is added to the forecast. */
static sluice_status add_outside(planning *p)
{
    const slc_times *times = p->request->times;
    slc_plan_forecast *out = &p->answer->forecast;
    const double alone_s = fmax(out->step_s, out->bound_s);
    slc_forecast forecast;
    if (!times || !(times->outside_s > 0 || times->late_s > 0)) return SLUICE_OK;
    sluice_status status = slc_simulate(p->job, times, p->answer->plan, NULL, &forecast);
    if (status) return status;
    note_forecast(p, &forecast);
    if (out->distance.known) out->distance.part_s[SLC_DISTANCE_OUTSIDE] = fmax(out->step_s - alone_s, 0);
    return SLUICE_OK;
}

static sluice_status make_within(planning *p)
{
    slc_plan *plan;
    slc_forecast forecast;
    slc_scheduling in = scheduling(p, p->strategies);
    in.limit = bound_of(p);
    sluice_status status = slc_plan_make(&in, p->scheduler, &plan);
    if (status) return status;
    if (plan->arena_bytes > limit_of(p))
        status = slc_budget_error(p->job, p->request, p->times, p->answer->budget_bytes, plan, &p->work, NULL);
    if (!status) status = slc_simulate(p->job, p->times, plan, NULL, &forecast);
    if (!status && p->request->updates != SLC_UPDATES_AUTO)
        status = slc_updates_place(&in, p->scheduler, p->request->updates, 0, &plan, &forecast);
    if (status) {
        slc_plan_destroy(plan);
        return status;
    }
    note_forecast(p, &forecast);
    p->answer->plan = plan;
    return SLUICE_OK;
}

static slc_joint_request joint_request(planning *p)
{
    return (slc_joint_request){.job = p->job,
                               .times = p->times,
                               .strategies = p->strategies,
                               .recompute = p->request->recompute,
                               .limit = bound_of(p),
                               .updates = p->request->updates,
                               .effort_s = p->request->effort_s,
                               .steps_left = p->request->steps_left,
                               .work = &p->work,
                               .quick = !p->request->times,
                               .cancel = p->request->cancel,
                               .portfolio = p->scheduler == &slc_scheduler_portfolio};
}

static bool is_free_as_forced(const planning *p)
{
    for (uint32_t u = 0; u < p->job->unit_count; u++)
        if (p->strategies[u] != SLC_STRATEGIES && !(p->request->forced && p->request->forced[u] == p->strategies[u]))
            return false;
    return true;
}

/* The error of a budget that is too small speaks of the plan that needs least, which joint planning has found. If other
 * strategies are allowed than the request names, they are searched with what is left of the effort. */
static sluice_status refuse_budget(planning *p, const slc_joint_request *ask)
{
    slc_plan *plan;
    const slc_smallest_arena *least = ask->least;
    slc_scheduling in = scheduling(p, least->strategies);
    sluice_status status = slc_plan_make(&in, &slc_scheduler_serial, &plan);
    if (status) return status;
    slc_smallest best = {least->arena_bytes + p->job->reserved_bytes, "auto", slc_schedule_default, least->cut};
    const double effort_s = slc_joint_effort_s(ask), left_s = fmax(effort_s - p->work.spent_s, LEAST_SHARE * effort_s);
    if (!is_free_as_forced(p)) status = slc_smallest_budget(p->job, p->request, p->times, left_s, &p->work, &best);
    if (!status)
        status = slc_budget_error(p->job, p->request, p->times, p->answer->budget_bytes, plan, &p->work, &best);
    slc_plan_destroy(plan);
    return status;
}

/* Finds what the distance to the bound is made of; a problem with that leaves the plan as it is and is noted. */
static void divide_distance(planning *p, const slc_joint_request *ask, const slc_joint_answer *found)
{
    slc_plan_distance *distance = &p->answer->forecast.distance;
    char *note = p->answer->note;
    if (ask->quick || found->ended == SLC_PLANNING_PAYS_NO_MORE || found->ended == SLC_PLANNING_TIME_LIMIT) return;
    sluice_status status = slc_distance_find(ask, found, found->bound_s, DISTANCE_SHARE * found->effort_s, distance);
    if (status && !*note)
        snprintf(note, sizeof p->answer->note, "the distance to the bound was not divided (%s: %s)",
                 sluice_status_name(status), sluice_last_error());
}

static sluice_status make_joint(planning *p)
{
    slc_joint_request ask = joint_request(p);
    slc_joint_answer found;
    slc_smallest_arena least = {p->scratch, p->recompute, 0, false};
    ask.least = &least;
    sluice_status status = slc_joint_plan(&ask, &found, NULL);
    if (status == SLUICE_ERR_BUDGET && ask.limit < limit_of(p)) {
        ask.limit = limit_of(p);
        status = slc_joint_plan(&ask, &found, NULL);
    }
    if (status == SLUICE_ERR_BUDGET && least.arena_bytes) return refuse_budget(p, &ask);
    if (status) return status;
    note_forecast(p, &found.forecast);
    p->answer->forecast.bound_s = found.bound_s;
    p->answer->forecast.searched_s = found.total_s;
    p->answer->forecast.effort_s = found.effort_s;
    p->answer->forecast.ended = found.ended;
    snprintf(p->answer->member, sizeof p->answer->member, "%s", found.member);
    snprintf(p->answer->note, sizeof p->answer->note, "%s", found.note);
    p->answer->plan = found.plan;
    divide_distance(p, &ask, &found);
    return SLUICE_OK;
}

static sluice_status take_kept(planning *p)
{
    slc_forecast forecast;
    sluice_status status = slc_kept_plan(p->job, p->request, p->answer);
    if (status) return status;
    status = slc_simulate(p->job, p->times, p->answer->plan, NULL, &forecast);
    if (!status) {
        note_forecast(p, &forecast);
        return SLUICE_OK;
    }
    slc_plan_destroy(p->answer->plan);
    p->answer->plan = NULL;
    return status;
}

static sluice_status make_answer(planning *p)
{
    sluice_status status = slc_strategies_parse(p->job, p->request->strategy, p->strategies);
    if (status) return status;
    slc_strategies_force(p->job, p->request->forced, p->strategies);
    for (uint32_t l = 0; l < p->job->layer_count; l++)
        p->recompute[l] = p->request->recompute && p->request->recompute[l] == 1;
    status = measure_dp(p);
    if (!status) status = resolve_budget(p->request, p->answer);
    if (status) return status;
    if (p->request->kept) return take_kept(p);
    if (slc_scheduler_is_joint(p->scheduler)) return make_joint(p);
    status = fill_free_units(p);
    return status ? status : make_within(p);
}

static sluice_status make_whole_answer(planning *p)
{
    sluice_status status = make_answer(p);
    if (status) return status;
    status = add_outside(p);
    if (!status) return SLUICE_OK;
    slc_plan_destroy(p->answer->plan);
    p->answer->plan = NULL;
    return status;
}

sluice_status slc_plan_for_budget(const slc_job *job, const slc_plan_request *request, slc_plan_answer *answer)
{
    *answer = (slc_plan_answer){0};
    slc_times slots_alone = request->times ? *request->times : (slc_times){0};
    slots_alone.outside_s = slots_alone.late_s = 0;
    planning p = {.job = job, .request = request, .answer = answer, .times = request->times ? &slots_alone : NULL};
    sluice_status status = find_scheduler(request->schedule, &p.scheduler);
    if (!status && !p.times) {
        status = slc_times_estimate(job, &p.estimated);
        p.times = &p.estimated;
    }
    if (status) return status;
    if (request->time_limit_s > 0)
        p.work.ceiling_ns = slc_clock_ns() + (uint64_t)(1e9 * fmin(request->time_limit_s, 1e9));
    p.strategies = calloc(2 * (size_t)job->unit_count + 1, sizeof *p.strategies);
    p.recompute = calloc((size_t)job->layer_count + 1, sizeof *p.recompute);
    if (p.strategies && p.recompute) {
        p.scratch = p.strategies + job->unit_count;
        status = make_whole_answer(&p);
    } else {
        status = slc_error(SLUICE_ERR_MEMORY, "plan: no memory for %u strategies", job->unit_count);
    }
    if (slc_cancelled(request->cancel)) {
        slc_plan_destroy(answer->plan);
        answer->plan = NULL;
        status = slc_cancel_check(request->cancel);
    }
    free(p.strategies);
    free(p.recompute);
    slc_times_fini(&p.estimated);
    return status;
}
