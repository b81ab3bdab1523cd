/* The joint plan as the studies ask for it. */
#include "bench/lab/study/study.h"

sluice_status slc_study_joint(const slc_study *study, const slc_profile *profile, uint64_t limit, bool recompute,
                              slc_joint_answer *answer)
{
    slc_free_choices c;
    *answer = (slc_joint_answer){0};
    sluice_status status = slc_free_choices_init(&c, &profile->job, recompute);
    if (status) return status;
    slc_joint_request ask = {.job = &profile->job,
                             .times = &profile->times,
                             .strategies = c.strategies,
                             .recompute = c.recompute,
                             .limit = limit,
                             .effort_s = study->effort_s,
                             .steps_left = study->steps};
    status = slc_joint_plan(&ask, answer, NULL);
    slc_free_choices_fini(&c);
    return status;
}
