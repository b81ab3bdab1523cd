/* The members of the joint search and their order: those that give a plan at once come first, those that improve it
 * follow while there is effort left, and while they can win back what they cost. */
#include "sched/joint/joint.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "sched/joint/least_memory.h"
#include "sched/joint/search.h"
#include "sched/search/local_search.h"
#include "sched/search/update_lane.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double FINE_SLACK = 1.25;   /* of at most SLC_FINE_UNITS units, plans this much slower are searched too; */
static const double SOME_SLACK = 1.1;    /* of at most SOME_UNITS units, those this much slower; */
static const double SECOND_SLACK = 1.02; /* of more units, the fastest of rules and of the model if this near */
static const double NEAREST = 1.005;   /* a search from a plan within this factor of the model's bound may end early */
static const double MODEL_SHARE = 0.6; /* of the effort: by then the slot model ends. Search has the rest, */
static const double DEEP_SHARE = 0.75; /* which finds little in deep jobs */
static const double MIXTURES_SHARE = 0.3; /* of what is left: what mixtures may take if there is a model, */
static const double FEW_MIXTURES = 0.1;   /* and what they may take if a plan is near the model's bound */
enum {
    SOME_UNITS = 40,      /* jobs of at most so many units are searched from several plans */
    DEEP_BASELINES = 8,   /* deep jobs try baselines before the model for an eighth of the effort */
    ITEMS_SEARCHED = 500, /* a search begins from about so many items of plans, longer orders from fewer plans */
    MOST_TRIES = 200000,  /* changes that all searches of one round make together */
    SHORT_ORDER = 100,    /* orders of fewer items are searched in more rounds */
};

/* ---- Local search ---- */

/* Places the updates of every plan in the shortlist, with a quarter of the effort that is left. The search goes on from
 * these plans. */
static sluice_status place_updates(slc_joint_search *j)
{
    slc_updates updates = j->request->updates;
    sluice_status status = SLUICE_OK;
    if (j->request->quick && updates == SLC_UPDATES_AUTO) return SLUICE_OK;
    double begin_s = j->work->spent_s, quarter = slc_joint_left_s(j) / 4;
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

static sluice_status search_from(const slc_joint_search *j, slc_candidate *from, double until_s, uint32_t tries,
                                 uint64_t seed)
{
    slc_scheduling in = slc_joint_scheduling(j->request, from->strategies, from->recompute);
    uint32_t items = from->plan->train.item_count;
    const bool far = j->first_bound_s > 0 && from->forecast.step_s > NEAREST * j->first_bound_s;
    slc_search_options options = {.until_s = until_s,
                                  .most_tries = tries,
                                  .patience = 200 + 2 * items + 40000 / items,
                                  .rounds = far                   ? UINT32_MAX
                                            : items < SHORT_ORDER ? 30
                                                                  : 6,
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

/* Makes sure that the first `count` plans, from which the search goes on, are of both kinds, made by the model and by
 * rules. If they are of one kind, the fastest plan of the other kind, if there is one, takes the place of the last of
 * them. A search often ends faster from the slower kind. */
static void bring_both_kinds(slc_shortlist *list, uint32_t count)
{
    uint32_t other = 1;
    while (other < list->count && list->list[other].of_model == list->list[0].of_model) other++;
    if (count < 2 || other < count || other >= list->count) return;
    const slc_candidate swap = list->list[count - 1];
    list->list[count - 1] = list->list[other];
    list->list[other] = swap;
}

/* Searches from several plans for two fifths of the effort, from the faster quarter of them for two fifths of what is
 * left, and so on; from the last one for all of the rest. A second kind of plan is searched twice before that. */
static sluice_status improve(slc_joint_search *j)
{
    slc_shortlist *list = &j->list;
    uint32_t tries = j->request->tries ? j->request->tries : MOST_TRIES;
    sluice_status status = SLUICE_OK;
    uint64_t seed = 1;
    uint32_t count = list->count ? ITEMS_SEARCHED / (list->list[0].plan->train.item_count + 1) + 1 : 0;
    const bool second = list->second_slack > 1;
    if (second) count = 2;
    if (count > list->count) count = list->count;
    for (; !status && count && slc_joint_left_s(j) > 0; seed++) {
        double begin_s = j->work->spent_s, left = slc_joint_left_s(j);
        if (count > 1) left = left / 5 * 2;
        bring_both_kinds(list, count);
        for (uint32_t i = 0; !status && i < count; i++) {
            slc_candidate *from = &list->list[i];
            bool open = from->bound_s < slc_joint_best_s(j); /* a search from there may end faster than the fastest */
            if (open && from->plan->train.item_count > 1)
                status = search_from(j, from, begin_s + left / count * (i + 1), tries / count, seed);
        }
        slc_shortlist_sort(list);
        if (!second || count < 2 || seed > 1) count = count > 1 ? (count + 3) / 4 : 0;
    }
    return status;
}

/* True if there are strategies or recomputation to choose. On one rank nothing is sharded; if nothing is recomputed
 * either, only the lane of the updates is left to choose. */
static bool has_choices(const slc_joint_request *r)
{
    return r->job->world > 1 || slc_joint_may_recompute(r);
}

/* True if there is nothing to choose and a simple plan fits: then that plan is all that there is to find. */
static bool is_trivial(const slc_joint_search *j)
{
    return j->list.count && !has_choices(j->request);
}

/* Mixtures take the model's place where there is none. They also begin searches, which may end nearer to the bound than
 * those from a plan that is near it already. In deep jobs they cost too much for that. */
static sluice_status try_mixtures(slc_joint_search *j)
{
    const double until_s = j->until_s;
    const bool near = slc_joint_is_near_bound(j);
    if (slc_joint_has_model(j->request)) {
        if (j->request->quick || is_trivial(j) || (near && (slc_joint_is_deep(j) || !slc_joint_affords_plan(j))))
            return SLUICE_OK;
        j->until_s = j->work->spent_s + (near ? FEW_MIXTURES : MIXTURES_SHARE) * slc_joint_left_s(j);
    }
    sluice_status status = slc_joint_try_mixtures(j);
    j->until_s = until_s;
    return status;
}

static sluice_status find_plan(slc_joint_search *j)
{
    const bool search = !j->request->quick, asks = search && slc_joint_has_model(j->request);
    const bool deep = asks && slc_joint_is_deep(j) && has_choices(j->request);
    const double until_s = j->until_s;
    /* Packing the orders of many layers takes long. So the model is asked early, and baselines go on with what effort
     * it leaves. */
    if (deep) j->until_s = j->begun_s + (until_s - j->begun_s) / DEEP_BASELINES;
    sluice_status status = slc_joint_try_baselines(j, false);
    j->until_s = until_s;
    if (!status) status = slc_joint_try_start(j);
    if (!status && asks && !is_trivial(j)) status = slc_joint_try_quick_mixture(j);
    if (!status && search && !is_trivial(j)) status = slc_joint_try_growth(j);
    if (!status && asks && !is_trivial(j)) {
        j->until_s = j->begun_s + (deep ? DEEP_SHARE : MODEL_SHARE) * (until_s - j->begun_s);
        status = slc_joint_try_slot_model(j);
        j->until_s = until_s;
    }
    if (!status && deep && !slc_joint_is_near_bound(j) && slc_joint_affords_plan(j))
        status = slc_joint_try_baselines(j, false);
    if (!status) status = slc_joint_try_baselines(j, true);
    if (!status && asks && !is_trivial(j) && !slc_joint_is_near_bound(j)) status = slc_joint_try_orders_of_fastest(j);
    if (!status) status = try_mixtures(j);
    if (!status && !j->list.count) status = slc_joint_try_least_memory(j);
    if (!status) status = place_updates(j);
    if (!status && search && !is_trivial(j)) status = improve(j);
    if (status == SLUICE_ERR_FORMAT && j->list.count) { /* a defect of ours; the plans that were found stay good */
        slc_joint_note_problem(j, status);
        status = SLUICE_OK;
    }
    if (!status && !j->list.count)
        status =
            slc_error(SLUICE_ERR_BUDGET, "no plan needs less than %llu bytes", (unsigned long long)j->request->limit);
    return status;
}

static void answer_with(const slc_joint_search *j, slc_candidate *best)
{
    j->answer->plan = best->plan;
    best->plan = NULL;
    j->answer->plan->schedule = slc_joint_has_model(j->request) ? slc_scheduler_ilp.name : slc_scheduler_portfolio.name;
    j->answer->forecast = best->forecast;
    memcpy(j->answer->member, best->member, sizeof best->member);
}

static double compute_s(const slc_joint_request *r)
{
    double sum_s = 0;
    for (uint32_t s = 0; s < slc_job_slots(r->job); s++) sum_s += slc_joint_mean_times(r)->slot_s[s];
    return sum_s * r->job->micro_batches;
}

sluice_status slc_joint_search_once(const slc_joint_request *request, slc_joint_answer *answer, uint64_t *least)
{
    size_t units = (size_t)request->job->unit_count + 1, layers = (size_t)request->job->layer_count + 1;
    slc_work own = {0};
    slc_joint_request counted = *request;
    if (!counted.work) counted.work = &own;
    const uint32_t count = request->job->unit_count;
    const double slack = count <= SLC_FINE_UNITS ? FINE_SLACK : count <= SOME_UNITS ? SOME_SLACK : 1;
    slc_joint_search j = {.request = &counted,
                          .answer = answer,
                          .start_ns = slc_clock_ns(),
                          .work = counted.work,
                          .least_step_s = compute_s(request),
                          .strategies = calloc(units, sizeof *j.strategies),
                          .recompute = calloc(layers, sizeof *j.recompute),
                          .list = {.job = request->job, .slack = slack, .second_slack = slack > 1 ? 0 : SECOND_SLACK},
                          .least = UINT64_MAX};
    j.begun_s = j.work->spent_s;
    j.effort_s = slc_joint_effort_s(request);
    j.until_s = j.begun_s + j.effort_s;
    j.least_from_s = j.until_s - fmin(slc_least_memory_share_s(j.effort_s), j.effort_s / 2);
    *answer = (slc_joint_answer){0};
    slc_joint_choose_runs(&j);
    sluice_status status = SLUICE_ERR_MEMORY;
    if (j.strategies && j.recompute)
        status = find_plan(&j);
    else
        slc_error(status, "plan");
    answer->ended = is_trivial(&j) ? SLC_PLANNING_TRIVIAL : SLC_PLANNING_DONE;
    if (!request->quick && !is_trivial(&j)) slc_joint_left_s(&j);
    answer->effort_s = j.work->spent_s - j.begun_s;
    if (!status && !request->times->keeps) status = slc_joint_prove_bound(&j);
    if (slc_cancelled(request->cancel)) status = slc_cancel_check(request->cancel); /* whatever it came to meanwhile */
    if (!status) answer_with(&j, &j.list.list[0]);
    answer->total_s = slc_seconds(slc_clock_ns() - j.start_ns);
    if (least) *least = j.least;
    free(j.strategies);
    free(j.recompute);
    slc_shortlist_fini(&j.list);
    return status;
}
/* Nominal seconds: one for what people train today, five for the deepest models; twice that with recomputation to
 * choose. */
double slc_joint_effort_s(const slc_joint_request *r)
{
    if (r->effort_s > 0) return r->effort_s;
    double layers = r->job->layer_count, seconds = layers <= 48 ? 0.9 : 0.9 + (layers - 48) * (3.6 / 78);
    return (seconds < 4.5 ? seconds : 4.5) * (slc_joint_may_recompute(r) ? 2 : 1);
}
