/* A joint search goes on while there is effort, and while what it may win is worth it; plans that fit are kept in a
 * shortlist. joint_test.c covers this file. */
#include "sched/joint/search.h"

#include "ilp/slot_model.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/parts.h"

#include <math.h>
#include <stdio.h>

static const double WORTH = 4;   /* see worth_s */
static const double NEAR = 1.02; /* a step within this factor of the model's bound needs no other answer */
enum {
    DEEP = 128 /* jobs of more layers have orders that take long to pack */
};

double slc_joint_best_s(const slc_joint_search *j)
{
    return j->list.list[0].forecast.step_s;
}

/* Nominal seconds that planning may take altogether so that the steps that are left can win them back: WORTH times what
 * they would all save with a step as short as the bound proven so far. */
static double worth_s(const slc_joint_search *j)
{
    if (!j->request->steps_left || !j->list.count) return INFINITY;
    double proven_s = fmax(j->first_bound_s, j->least_step_s);
    return WORTH * (double)j->request->steps_left * fmax(slc_joint_best_s(j) - proven_s, 0);
}

double slc_joint_end_s(const slc_joint_search *j)
{
    return j->list.count ? j->until_s : fmin(j->until_s, j->least_from_s);
}

double slc_joint_left_s(slc_joint_search *j)
{
    double spent_s = j->work->spent_s - j->begun_s, worth = worth_s(j) - spent_s;
    double left =
        slc_work_is_over(j->work, slc_joint_end_s(j)) ? 0 : fmin(slc_joint_end_s(j) - j->work->spent_s, worth);
    if (left > 0) return left;
    j->answer->ended = j->work->cut ? SLC_PLANNING_TIME_LIMIT
                       : worth <= 0 ? SLC_PLANNING_PAYS_NO_MORE
                                    : SLC_PLANNING_EFFORT;
    return 0;
}

bool slc_joint_affords_plan(slc_joint_search *j)
{
    return slc_joint_affords(j, &slc_scheduler_one_ahead);
}

bool slc_joint_affords(slc_joint_search *j, const slc_scheduler *scheduler)
{
    const double left_s = slc_joint_left_s(j), plan_s = j->plan_s * (1 + 2 * scheduler->measures);
    return left_s > 0 && (!slc_joint_is_deep(j) || left_s >= plan_s);
}

bool slc_joint_is_spent(const slc_joint_search *j)
{
    return slc_work_is_over(j->work, slc_joint_end_s(j));
}

bool slc_joint_is_deep(const slc_joint_search *j)
{
    return j->request->job->layer_count > DEEP;
}

slc_scheduling slc_joint_scheduling_of(const slc_joint_search *j)
{
    return slc_joint_scheduling(j->request, j->strategies, j->recompute);
}

static bool is_of_model(const slc_scheduler *scheduler)
{
    return scheduler == &slc_scheduler_ilp;
}

double slc_joint_below_s(const slc_joint_search *j, const slc_scheduler *scheduler)
{
    return slc_shortlist_below_s(&j->list, j->strategies, j->recompute, is_of_model(scheduler));
}

sluice_status slc_joint_consider(slc_joint_search *j, slc_plan *plan, const slc_forecast *forecast,
                                 const slc_scheduler *scheduler, const char *member)
{
    const slc_job *job = j->request->job;
    slc_candidate candidate = {.strategies = j->strategies,
                               .recompute = j->recompute,
                               .scheduler = scheduler,
                               .plan = plan,
                               .forecast = *forecast,
                               .of_model = is_of_model(scheduler),
                               .bound_s = j->bound_s};
    const double below_s = slc_joint_below_s(j, scheduler);
    if (plan->arena_bytes < j->least) j->least = plan->arena_bytes;
    const bool taken = plan->arena_bytes <= j->request->limit && (!below_s || forecast->step_s < below_s);
    slc_work_add(j->work, SLC_WORK_CHECKED, taken ? slc_plan_length(plan) : 0);
    sluice_status status = taken ? slc_plan_validate(job, plan) : SLUICE_OK;
    if (!taken || status) {
        slc_plan_destroy(plan);
        return status;
    }
    if (!j->list.count) j->answer->first_s = slc_seconds(slc_clock_ns() - j->start_ns);
    snprintf(candidate.member, sizeof candidate.member, "%s", member);
    return slc_shortlist_take(&j->list, &candidate);
}

void slc_joint_choose_uniform(slc_joint_search *j, slc_strategy strategy, bool recompute_free)
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

bool slc_joint_may_recompute(const slc_joint_request *r)
{
    for (uint32_t l = 0; r->recompute && l < r->job->layer_count; l++)
        if (r->recompute[l] == 2) return true;
    return false;
}

bool slc_joint_has_model(const slc_joint_request *r)
{
    return !r->portfolio && slc_slot_model_solver();
}

void slc_joint_note_problem(slc_joint_search *j, sluice_status status)
{
    snprintf(j->answer->note, sizeof j->answer->note, "planning was cut short (%s: %s)", sluice_status_name(status),
             sluice_last_error());
}

bool slc_joint_is_near_bound(const slc_joint_search *j)
{
    return j->list.count && slc_joint_best_s(j) <= NEAR * j->first_bound_s;
}
