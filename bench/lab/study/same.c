/* Plans drawn profiles and prints the checksum of each plan's file, so that two runs of this study show whether plans
 * depend on the machine, or on who else uses it. It also shows what planning took in nominal seconds and by the clock.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/study.h"
#include "lib/base/hash/crc32c.h"
#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "sched/study/random_profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILES = 40, STREAM = 0x5a };

static sluice_status checksum(const slc_profile *profile, const slc_joint_answer *answer, uint32_t *out)
{
    char *text = NULL;
    const slc_plan_forecast forecast = {.step_s = answer->forecast.step_s,
                                        .bound_s = answer->bound_s,
                                        .why = answer->member,
                                        .effort_s = answer->effort_s,
                                        .ended = answer->ended};
    sluice_status status = slc_plan_to_json(&profile->job, answer->plan, &forecast, &text);
    if (!status) *out = slc_crc32c(0, text, strlen(text));
    free(text);
    return status;
}

/* Draws a budget between the smallest and what sdp needs; every second profile may recompute. */
static sluice_status plan_profile(const slc_study *study, uint64_t seed, slc_profile **profile,
                                  slc_joint_answer *answer)
{
    slc_random_options options = slc_random_defaults();
    uint64_t least = 0, all_sdp = 0;
    const bool recompute = seed % 2;
    sluice_status status = slc_random_profile(&options, seed, profile);
    if (!status) status = slc_simple_plan_range(*profile, recompute, &least, &all_sdp);
    double share = (double)slc_random_below(seed, STREAM, 0, 1000) / 1000;
    uint64_t limit = least + (uint64_t)((0.05 + 0.95 * share) * (double)(all_sdp > least ? all_sdp - least : 0));
    return status ? status : slc_study_joint(study, *profile, limit, recompute, answer);
}

static sluice_status add_row(const slc_study *study, uint64_t seed, const slc_profile *profile,
                             const slc_joint_answer *answer)
{
    uint32_t sum;
    sluice_status status = checksum(profile, answer, &sum);
    if (status) return status;
    const double above = answer->bound_s > 0 ? answer->forecast.step_s / answer->bound_s - 1 : 0;
    fprintf(study->out, "%-8" PRIu64 " %6u %08x %10.3f ms %7.2f %% %9.3f s %9.3f s  %s\n", seed,
            profile->job.layer_count, sum, 1e3 * answer->forecast.step_s, 100 * above, answer->effort_s,
            answer->total_s, slc_planning_end_name(answer->ended));
    json_t *row =
        json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:s}", "study", "same", "seed", (json_int_t)seed, "checksum",
                  (json_int_t)sum, "step_s", answer->forecast.step_s, "above_bound", above, "effort_s",
                  answer->effort_s, "planning_s", answer->total_s, "ended", slc_planning_end_name(answer->ended));
    return json_array_append_new(study->rows, row) ? slc_error(SLUICE_ERR_MEMORY, "study") : SLUICE_OK;
}

sluice_status slc_study_same(const slc_study *study)
{
    uint32_t count = study->count ? study->count : PROFILES;
    sluice_status status = SLUICE_OK;
    fprintf(study->out, "%-8s %6s %8s %13s %9s %11s %11s  %s\n", "seed", "layers", "plan", "step", "above", "effort",
            "clock", "ended");
    for (uint32_t i = 0; !status && i < count; i++) {
        slc_profile *profile = NULL;
        slc_joint_answer answer = {0};
        status = plan_profile(study, study->seed + i, &profile, &answer);
        if (!status) status = add_row(study, study->seed + i, profile, &answer);
        slc_plan_destroy(answer.plan);
        slc_profile_destroy(profile);
    }
    return status;
}
