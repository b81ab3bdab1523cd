/* The joint plan as the studies ask for it. tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/study.h"

slc_joint_request slc_study_request(const slc_profile *profile, const slc_free_choices *choices, uint64_t limit)
{
    return (slc_joint_request){.job = &profile->job,
                               .times = &profile->times,
                               .strategies = choices->strategies,
                               .recompute = choices->recompute,
                               .limit = limit};
}

void slc_study_take_faster(double step_s, double *best_s)
{
    if (step_s > 0 && (!*best_s || step_s < *best_s)) *best_s = step_s;
}

sluice_status slc_study_try(const slc_joint_request *ask, double *step_s)
{
    slc_joint_answer answer = {0};
    sluice_status status = slc_joint_plan(ask, &answer, NULL);
    if (!status) slc_study_take_faster(answer.forecast.step_s, step_s);
    slc_plan_destroy(answer.plan);
    return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
}

sluice_status slc_study_joint(const slc_study *study, const slc_profile *profile, uint64_t limit, bool recompute,
                              slc_joint_answer *answer)
{
    slc_free_choices c;
    *answer = (slc_joint_answer){0};
    sluice_status status = slc_free_choices_init(&c, &profile->job, recompute);
    if (status) return status;
    slc_joint_request ask = slc_study_request(profile, &c, limit);
    ask.effort_s = study->effort_s;
    ask.steps_left = study->steps;
    status = slc_joint_plan(&ask, answer, NULL);
    slc_free_choices_fini(&c);
    return status;
}
