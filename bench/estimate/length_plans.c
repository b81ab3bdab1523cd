/* tests/command/recipe/recipe_plan_test.sh covers this file. */
#include "bench/estimate/length_plans.h"

#include "bench/estimate/answers.h"
#include "bench/train/options/length_options.h"

#include <stdio.h>

static sluice_status plan_length(const slc_survey *survey, uint32_t length, uint64_t budget_bytes, double effort_s,
                                 slc_profile **profile, slc_plan **plan)
{
    char budget[24];
    slc_survey short_one = *survey;
    slc_training_options options = *survey->training;
    slc_plan_answer answer = {0};
    snprintf(budget, sizeof budget, "%llu", (unsigned long long)budget_bytes);
    options.budget = budget;
    slc_length_options_drop(&options);
    short_one.training = &options;
    short_one.length = length;
    short_one.length_step = 0;
    sluice_status status = slc_answers_plan(&short_one, effort_s, profile, &answer);
    *plan = answer.plan;
    return status;
}

sluice_status slc_length_plans_make(const slc_survey *survey, slc_phase_plan whole, uint64_t budget_bytes,
                                    double effort_s, slc_length_plans *out)
{
    sluice_model_options model = SLUICE_INIT(sluice_model_options, .length = survey->length);
    *out = (slc_length_plans){.survey = survey, .plans.whole = whole};
    slc_length_options_set_model(survey->training, out->plans.lengths, &model);
    sluice_status status = SLUICE_OK;
    for (uint32_t s = 0; !status && budget_bytes && s < model.shape_count; s++) {
        out->plans.count++;
        status = plan_length(survey, out->plans.lengths[s], budget_bytes, effort_s, &out->plans.profiles[s],
                             &out->plans.plans[s]);
    }
    return status;
}

void slc_length_plans_free(slc_length_plans *plans)
{
    slc_plans_by_length_fini(&plans->plans);
}

static uint32_t length_of(const slc_length_plans *p, const slc_phase_plan *under)
{
    for (uint32_t s = 0; s < p->plans.count; s++)
        if (p->plans.plans[s] == under->plan) return p->plans.lengths[s];
    return p->survey->length;
}

void slc_length_plans_set_times(void *context, const slc_phase_plan *under, const slc_recipe_step *size,
                                slc_times *times)
{
    const slc_length_plans *p = context;
    const slc_survey *s = p->survey;
    const uint32_t batch = (uint32_t)s->training->batch * size->pieces;
    const double filled = (double)size->pieces * size->length / length_of(p, under);
    slc_pace_set_slots(&s->pace, &s->model, batch, size->length, filled, &under->profile->job, times);
}
