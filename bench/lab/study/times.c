/* Measures how long planning takes on one core, and how soon the first plan is there. */
#include "bench/lab/study/study.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "sched/study/random_profile.h"

#include <stdlib.h>

static sluice_status one(const slc_study *study, uint32_t layers, bool recompute, double share)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile = NULL;
    slc_joint_answer answer = {0};
    uint64_t least = 0, all_sdp = 0;
    options.layers = (slc_random_range){layers, layers};
    options.activations = (slc_random_range){1, 1};
    options.can_recompute = recompute;
    options.world = 8;
    options.micro_batches = 1;
    sluice_status status = slc_random_profile(&options, study->seed + layers, &profile);
    if (!status) status = slc_simple_plan_range(profile, recompute, &least, &all_sdp);
    uint64_t limit = least + (uint64_t)(share * (double)(all_sdp > least ? all_sdp - least : 0));
    if (!status) status = slc_study_joint(study, profile, limit, recompute, &answer);
    if (!status) {
        double above = answer.bound_s > 0 ? answer.forecast.step_s / answer.bound_s - 1 : 0;
        fprintf(study->out, "%6u  %-9s %6.0f %% %9.3f %9.3f %9.3f %9.2f  %s\n", layers, recompute ? "free" : "none",
                100 * share, answer.first_s, answer.solver_s, answer.total_s, 100 * above, answer.member);
        json_array_append_new(study->rows, json_pack("{s:s, s:i, s:b, s:f, s:f, s:f, s:f, s:f}", "study", "times",
                                                     "layers", (int)layers, "recompute", (int)recompute, "share", share,
                                                     "first_s", answer.first_s, "solver_s", answer.solver_s, "total_s",
                                                     answer.total_s, "above_bound", above));
    }
    slc_plan_destroy(answer.plan);
    slc_profile_destroy(profile);
    return status;
}

sluice_status slc_study_times(const slc_study *study)
{
    static const uint32_t layers[] = {12, 24, 48, 96, 126};
    static const double shares[] = {0.1, 0.5, 0.9};
    sluice_status status = SLUICE_OK;
    fprintf(study->out, "%6s  %-9s %8s %9s %9s %9s %9s\n", "layers", "recompute", "budget", "first s", "solver s",
            "all s", "above %");
    for (int recompute = 0; !status && recompute < 2; recompute++)
        for (size_t l = 0; !status && l < sizeof layers / sizeof *layers; l++)
            for (size_t s = 0; !status && s < sizeof shares / sizeof *shares; s++)
                status = one(study, layers[l], recompute, shares[s]);
    return status;
}
