/* sched/joint/drawn_test.c covers this file. */
#include "sched/study/drawn_plans.h"

#include "lib/base/status.h"
#include "sched/simulate/draws.h"
#include "sched/simulate/simulate.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_drawn_plans_set_keeps(slc_profile *profile, double theta)
{
    const uint32_t layers = profile->job.layer_count, between = layers > 2 ? layers - 2 : 0;
    double *keeps = malloc(((size_t)layers + 1) * sizeof *keeps);
    if (!keeps) return slc_error(SLUICE_ERR_MEMORY, "probabilities of %u layers", layers);
    for (uint32_t l = 0; l < layers; l++) keeps[l] = l && l <= between ? 1 - (l - 1) * (1 - theta) / between : 1;
    sluice_status status = slc_times_set_keeps(&profile->job, keeps, &profile->times);
    free(keeps);
    return status;
}

static sluice_status simulate_both(const slc_joint_request *request, const slc_times *all_times, const slc_plan *all,
                                   const slc_plan *drawn, const slc_simulation *how, slc_drawn_plans *out)
{
    slc_forecast whole, mean, mean_of_drawn;
    sluice_status status = slc_simulate(request->job, all_times, all, NULL, &whole);
    if (!status) status = slc_simulate(request->job, request->times, all, how, &mean);
    if (!status) status = slc_simulate(request->job, request->times, drawn, how, &mean_of_drawn);
    if (status) return status;
    out->whole_s = whole.step_s;
    out->all_s = mean.step_s;
    out->drawn_s = mean_of_drawn.step_s;
    return SLUICE_OK;
}

sluice_status slc_drawn_plans_compare(const slc_joint_request *request, uint32_t draws, uint64_t seed,
                                      slc_drawn_plans *out)
{
    const slc_job *job = request->job;
    slc_joint_request of_all = *request;
    slc_joint_answer all = {0}, drawn = {0};
    slc_times times;
    *out = (slc_drawn_plans){.depth = slc_times_depth(job, request->times)};
    sluice_status status = slc_times_copy(job, request->times, &times);
    if (status) return status;
    bool *left_out = malloc((size_t)draws * job->layer_count + 1);
    if (!left_out) status = slc_error(SLUICE_ERR_MEMORY, "%u draws of layers", draws);
    if (!status) status = slc_times_set_keeps(job, NULL, &times);
    of_all.times = &times;
    if (!status) status = slc_joint_plan(&of_all, &all, NULL);
    if (!status) status = slc_joint_plan(request, &drawn, NULL);
    if (!status) {
        slc_draws_make(job, request->times->keeps, draws, seed, left_out);
        const slc_simulation how = {.left_out = left_out, .draws = draws};
        status = simulate_both(request, &times, all.plan, drawn.plan, &how, out);
        out->said_s = drawn.forecast.step_s;
        memcpy(out->member, drawn.member, sizeof out->member);
    }
    slc_plan_destroy(all.plan);
    slc_plan_destroy(drawn.plan);
    free(left_out);
    slc_times_fini(&times);
    return status;
}
