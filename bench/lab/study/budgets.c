/* Compares the joint plan with the fastest uniform strategy under any baseline at the same budget, over ten budgets for
 * profiles whose compute and communication take about equally long.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/study.h"
#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "sched/study/random_profile.h"

#include <stdlib.h>
#include <string.h>

enum { BUDGETS = 10, CASES = 6 };

typedef struct {
    double gain[BUDGETS]; /* 1 - step / best uniform; below -1: no baseline fits */
    double less_exposed[BUDGETS];
    uint64_t least, floor, one_ahead_fsdp, serial_fsdp;
    double tight_gain; /* gain with recomputation, at a tenth of the range */
} sweep;

static sluice_status gains_at_budget(const slc_study *study, const slc_profile *profile, uint64_t limit, double *gain,
                                     double *less_exposed)
{
    slc_joint_answer answer;
    slc_simple_plan best = {0}, ahead = {0};
    *gain = *less_exposed = -2;
    sluice_status status = slc_study_joint(study, profile, limit, false, &answer);
    if (!status) status = slc_simple_plan_fastest_uniform(profile, limit, &best);
    if (!status) status = slc_simple_plan_uniform(profile, SLC_FSDP, &slc_scheduler_one_ahead, limit, &ahead);
    if (!status && best.step_s > 0) *gain = 1 - answer.forecast.step_s / best.step_s;
    if (!status && ahead.step_s > 0 && ahead.exposed_s > 0)
        *less_exposed = 1 - answer.forecast.exposed_s / ahead.exposed_s;
    slc_plan_destroy(answer.plan);
    return status;
}

/* Measures recomputation where it is worth most: memory is scarcest, and activations take as much as parameters. The
 * baselines may recompute too: nothing or everything. */
static sluice_status gain_of_recomputing(const slc_study *study, const slc_profile *profile, double *gain)
{
    uint64_t least = 0, all_sdp = 0;
    slc_joint_answer with, without;
    sluice_status status = slc_simple_plan_range(profile, false, &least, &all_sdp);
    uint64_t limit = least + (all_sdp - least) / 10;
    if (!status) status = slc_study_joint(study, profile, limit, false, &without);
    if (status) return status;
    status = slc_study_joint(study, profile, limit, true, &with);
    if (!status) *gain = 1 - with.forecast.step_s / without.forecast.step_s;
    slc_plan_destroy(without.plan);
    slc_plan_destroy(with.plan);
    return status;
}

/* Finds the memory below which no plan can be, whatever its strategies and order: the slot model's least memory, before
 * packing. */
static sluice_status find_floor(const slc_profile *profile, uint64_t *bytes)
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

static sluice_status sweep_profile(const slc_study *study, const slc_profile *profile, sweep *s)
{
    uint64_t all_sdp = 0;
    slc_simple_plan plan = {0};
    sluice_status status = slc_simple_plan_range(profile, false, &s->least, &all_sdp);
    if (!status) status = find_floor(profile, &s->floor);
    if (!status) status = slc_simple_plan_uniform(profile, SLC_FSDP, &slc_scheduler_one_ahead, UINT64_MAX, &plan);
    s->one_ahead_fsdp = plan.arena_bytes;
    if (!status) status = slc_simple_plan_uniform(profile, SLC_FSDP, &slc_scheduler_serial, UINT64_MAX, &plan);
    s->serial_fsdp = plan.arena_bytes;
    for (int b = 0; !status && b < BUDGETS; b++) {
        uint64_t limit = s->least + (uint64_t)((double)(all_sdp - s->least) * (b + 1) / (BUDGETS + 1));
        status = gains_at_budget(study, profile, limit, &s->gain[b], &s->less_exposed[b]);
    }
    return status ? status : gain_of_recomputing(study, profile, &s->tight_gain);
}

static double mean_of_known(const double *values, int first, int end, int *known)
{
    double sum = 0;
    *known = 0;
    for (int i = first; i < end; i++)
        if (values[i] > -1) {
            sum += values[i];
            ++*known;
        }
    return *known ? sum / *known : 0;
}

static void print_sweep(const slc_study *study, const slc_profile *profile, double ratio, const sweep *s)
{
    int known, upper, exposed;
    double mean = mean_of_known(s->gain, 0, BUDGETS, &known);
    double five = mean_of_known(s->gain, BUDGETS / 2, BUDGETS, &upper);
    double less = mean_of_known(s->less_exposed, 0, BUDGETS, &exposed);
    fprintf(study->out, "%4u %6.2f %5d %9.1f %9.1f %9.1f %9.1f %10.2f %10.2f %10.2f\n", profile->job.layer_count, ratio,
            known, 100 * mean, 100 * five, 100 * less, 100 * s->tight_gain,
            ((double)s->one_ahead_fsdp - (double)s->least) / 1e6, ((double)s->serial_fsdp - (double)s->least) / 1e6,
            ((double)s->floor - (double)s->least) / 1e6);
    json_t *gains = json_array();
    for (int b = 0; b < BUDGETS; b++)
        json_array_append_new(gains, s->gain[b] > -1 ? json_real(s->gain[b]) : json_null());
    json_array_append_new(
        study->rows, json_pack("{s:s, s:i, s:f, s:o, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I}", "study", "budgets",
                               "layers", (int)profile->job.layer_count, "compute_over_communication", ratio, "gains",
                               gains, "mean_gain", mean, "upper_five", five, "less_exposed_than_one_ahead_fsdp", less,
                               "recompute_gain_at_a_tenth", s->tight_gain, "least_bytes", (json_int_t)s->least,
                               "floor_bytes", (json_int_t)s->floor, "one_ahead_fsdp_bytes",
                               (json_int_t)s->one_ahead_fsdp, "serial_fsdp_bytes", (json_int_t)s->serial_fsdp));
}

sluice_status slc_study_budgets(const slc_study *study)
{
    static const double ratios[CASES] = {0.5, 0.7, 1.0, 0.5, 0.7, 1.0};
    static const double layers[CASES] = {12, 12, 12, 24, 24, 24};
    uint32_t count = study->count ? study->count : CASES;
    double means[3] = {0};
    sluice_status status = SLUICE_OK;
    fprintf(
        study->out,
        "adaptive against the best uniform strategy under any baseline, ten budgets between the smallest and all sdp\n"
        "(smallest budget that works: how many MB more uniform fsdp needs; how many no plan can do without, less)\n"
        "%4s %6s %5s %9s %9s %9s %9s %10s %10s %10s\n",
        "L", "r", "rows", "faster %", "upper 5 %", "exposed-%", "recomp. %", "one_ahead MB", "serial MB", "floor MB");
    for (uint32_t i = 0; !status && i < count; i++) {
        slc_random_options options = slc_random_defaults();
        double r = ratios[i % CASES], l = layers[i % CASES];
        options.layers = (slc_random_range){l, l};
        options.compute_ratio = (slc_random_range){r, r};
        options.activations = (slc_random_range){1, 1};
        options.can_recompute = true;
        options.world = 8;
        options.micro_batches = 1;
        slc_profile *profile = NULL;
        sweep s = {0};
        status = slc_random_profile(&options, study->seed + i, &profile);
        if (!status) status = sweep_profile(study, profile, &s);
        if (!status) {
            int known;
            print_sweep(study, profile, r, &s);
            means[0] += mean_of_known(s.gain, 0, BUDGETS, &known) / count;
            means[1] += mean_of_known(s.gain, BUDGETS / 2, BUDGETS, &known) / count;
            means[2] += mean_of_known(s.less_exposed, 0, BUDGETS, &known) / count;
        }
        slc_profile_destroy(profile);
    }
    if (!status)
        fprintf(study->out, "mean: %.1f %% faster, upper five %.1f %%, exposed %.1f %% below one_ahead fsdp\n",
                100 * means[0], 100 * means[1], 100 * means[2]);
    return status;
}
