/* Asks the planner what train would ask it. tests/command/plan/estimate_test.sh covers this file. */
#include "bench/estimate/answers.h"

#include "lib/base/status.h"
#include "sched/planner.h"
#include "sched/simulate/simulate.h"

#include <stdlib.h>
#include <string.h>

static const double shares[SLC_BUDGETS] = {1, 0.8, 0.6, 0.4};

/* ---- Requests ---- */

static sluice_status make_request(const slc_profile *profile, const slc_training_options *o, const char *recompute,
                                  slc_plan_request *request)
{
    const slc_job *job = &profile->job;
    uint8_t *choices = calloc((size_t)job->layer_count + 1, 1);
    *request = (slc_plan_request){.strategy = o->strategy,
                                  .schedule = o->schedule,
                                  .recompute = choices,
                                  .updates = SLC_UPDATES_COMMUNICATION,
                                  .times = &profile->times};
    if (!choices) return slc_error(SLUICE_ERR_MEMORY, "layers");
    for (uint32_t l = 0; l < job->layer_count; l++) {
        bool can = job->can_recompute && job->can_recompute[l];
        choices[l] = !can || !strcmp(recompute, "none") ? 0 : !strcmp(recompute, "all") ? 1 : 2;
    }
    return SLUICE_OK;
}

static sluice_status survey_under(const slc_survey *s, uint64_t budget_bytes, double budget_of_dp, slc_profile **out)
{
    const slc_survey_plan plan = {s->training->strategy, s->training->schedule, budget_bytes, budget_of_dp};
    return slc_survey_profile(s, &plan, out);
}

/* ---- The smallest budget ---- */

/* Finds the smallest budget that works. Layers are fused as under a budget that nothing fits into: none that would take
 * memory, as in a training that is refused. */
static sluice_status find_smallest(const slc_survey *s, uint64_t *bytes)
{
    slc_profile *profile = NULL;
    slc_plan_request request = {0};
    sluice_status status = survey_under(s, 1, 0, &profile);
    if (!status) status = make_request(profile, s->training, s->training->recompute, &request);
    request.times = NULL; /* as before the first step: a refusal knows no times */
    if (!status) status = slc_plan_smallest_budget(&profile->job, &request, bytes);
    free((void *)request.recompute);
    slc_profile_destroy(profile);
    return status;
}

/* ---- Strategies ---- */

/* Finds what one strategy needs and takes. `sluice train` plans a serial schedule before it has measured anything, so
 * the times that follow from the pace are set only when the plan is there. */
static sluice_status weigh_strategy(const slc_survey *s, const slc_profile *profile, bool recompute,
                                    slc_strategy_need *need)
{
    slc_plan_request request;
    slc_plan_answer answer = {0};
    slc_forecast forecast = {0};
    need->recompute = recompute;
    sluice_status status = make_request(profile, s->training, recompute ? "all" : "none", &request);
    request.strategy = slc_strategy_name(need->strategy);
    request.schedule = "serial";
    request.times = NULL;
    if (!status) status = slc_plan_for_budget(&profile->job, &request, &answer);
    if (!status) status = slc_simulate(&profile->job, &profile->times, answer.plan, NULL, &forecast);
    if (!status) need->bytes = answer.plan->arena_bytes + profile->job.reserved_bytes;
    need->step_s = forecast.step_s;
    slc_plan_destroy(answer.plan);
    free((void *)request.recompute);
    return status;
}

static sluice_status weigh_strategies(const slc_survey *s, slc_answers *out)
{
    sluice_status status = SLUICE_OK;
    for (int k = 0; !status && k < SLC_EXACT_STRATEGIES; k++) {
        const slc_survey_plan serial = {slc_strategy_name((slc_strategy)k), "serial", 0, 0};
        slc_profile *profile = NULL;
        status = slc_survey_profile(s, &serial, &profile);
        for (int again = 0; !status && again < 2; again++) {
            slc_strategy_need *need = &out->needs[out->need_count++];
            need->strategy = (slc_strategy)k;
            status = weigh_strategy(s, profile, again != 0, need);
        }
        slc_profile_destroy(profile);
    }
    return status;
}

/* ---- Budgets ---- */

void slc_budget_plan_of(const slc_profile *profile, const slc_plan_answer *answer, slc_budget_plan *out)
{
    const slc_plan *plan = answer->plan;
    out->fits = true;
    out->budget_bytes = answer->budget_bytes;
    out->peak_bytes = plan->arena_bytes + profile->job.reserved_bytes;
    out->forecast = answer->forecast;
    out->units = slc_strategy_counts_of(&profile->job, plan->strategies);
    for (uint32_t l = 0; l < profile->job.layer_count; l++) out->recomputed += plan->recompute && plan->recompute[l];
}

static sluice_status plan_share(const slc_survey *s, double share, double effort_s, slc_answers *out)
{
    slc_budget_plan *row = &out->plans[out->plan_count++];
    slc_profile *profile = NULL;
    slc_plan_request request = {0};
    slc_plan_answer answer = {0};
    *row = (slc_budget_plan){.of_dp = share, .budget_bytes = (uint64_t)(share * (double)out->dp_bytes)};
    sluice_status status = survey_under(s, 0, share, &profile);
    if (!status) status = make_request(profile, s->training, s->training->recompute, &request);
    request.budget_of_dp = share;
    request.effort_s = effort_s;
    request.time_limit_s = s->training->time_limit_s;
    if (!status && row->budget_bytes < out->smallest_bytes)
        status = SLUICE_ERR_BUDGET; /* no need to look for a plan */
    else if (!status)
        status = slc_plan_for_budget(&profile->job, &request, &answer);
    if (!status) slc_budget_plan_of(profile, &answer, row);
    slc_plan_destroy(answer.plan);
    free((void *)request.recompute);
    slc_profile_destroy(profile);
    return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
}

sluice_status slc_answers_find(const slc_survey *s, double effort_s, slc_answers *out)
{
    *out = (slc_answers){.parameters = sluice_model_param_count(&s->model)};
    sluice_status status = find_smallest(s, &out->smallest_bytes);
    if (!status) status = weigh_strategies(s, out);
    out->dp_bytes = out->needs[0].bytes;
    for (int i = 0; !status && i < SLC_BUDGETS; i++) status = plan_share(s, shares[i], effort_s, out);
    return status;
}

/* ---- The user's plan ---- */

sluice_status slc_answers_plan_with(const slc_survey *s, double effort_s, const slc_profile *profile,
                                    const slc_times *times, slc_plan_answer *answer)
{
    sluice_config config;
    slc_plan_request request = {0};
    sluice_status status = slc_training_config(s->training, &config);
    if (!status) status = make_request(profile, s->training, s->training->recompute, &request);
    request.times = times;
    request.budget_bytes = config.budget_bytes;
    request.budget_of_dp = config.budget_of_dp;
    request.effort_s = effort_s;
    request.time_limit_s = s->training->time_limit_s;
    if (!status) status = slc_plan_for_budget(&profile->job, &request, answer);
    free((void *)request.recompute);
    return status;
}

sluice_status slc_answers_plan(const slc_survey *s, double effort_s, slc_profile **profile, slc_plan_answer *answer)
{
    sluice_config config;
    sluice_status status = slc_training_config(s->training, &config);
    if (!status) status = survey_under(s, config.budget_bytes, config.budget_of_dp, profile);
    return status ? status : slc_answers_plan_with(s, effort_s, *profile, &(*profile)->times, answer);
}
