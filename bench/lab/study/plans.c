/* Plans and summaries that the studies share. */
#include "bench/lab/study/study.h"

#include "bench/cli/median.h"
#include "ilp/slot_model.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
                             .time_limit_s = study->time_limit_s};
    status = slc_joint_plan(&ask, answer, NULL);
    slc_free_choices_fini(&c);
    return status;
}

sluice_status slc_study_floor(const slc_profile *profile, uint64_t *bytes)
{
    const slc_job *job = &profile->job;
    uint8_t *allowed = malloc((size_t)job->unit_count + 1);
    if (!allowed) return slc_error(SLUICE_ERR_MEMORY, "study");
    memset(allowed, 1 << SLC_DP | 1 << SLC_OSS | 1 << SLC_SDP | 1 << SLC_FSDP, job->unit_count);
    slc_slot_request ask = {.job = job, .times = &profile->times, .allowed = allowed};
    slc_slot_solution solution;
    sluice_status status = slc_slot_model_least_memory(&ask, bytes, &solution);
    slc_slot_solution_fini(&solution);
    free(allowed);
    return status;
}

double slc_study_quantile(double *values, size_t count, double q)
{
    if (!count) return NAN;
    slc_sort(values, count);
    size_t at = (size_t)(q * (double)(count - 1) + 0.5);
    return values[at];
}

double slc_study_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += values[i];
    return count ? sum / (double)count : NAN;
}
