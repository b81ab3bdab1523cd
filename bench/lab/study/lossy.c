/* The compressed phase of drawn jobs on slow links, over ten budgets from the smallest that works to that of onebit
 * everywhere. Each row has the joint plan, the fastest plan with one exact strategy, and the fastest with onebit
 * only. tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/study.h"
#include "lib/base/status.h"
#include "sched/study/random_profile.h"

#include <inttypes.h>

enum { PROFILES = 9, BUDGETS = 10 };

typedef struct {
    slc_simple_plan exact, onebit; /* fastest uniform plans */
    slc_forecast forecast;
    uint32_t of[SLC_STRATEGIES]; /* number of units with each strategy */
    uint64_t limit;
} budget_row;

typedef struct {
    uint32_t rows, mixed, mixed_wins, slower;
    double gain; /* gain of mixed plans over the best uniform plan that fits */
} totals;

static sluice_status draw(uint64_t seed, double gbit, slc_profile **out)
{
    slc_random_options options = slc_random_defaults();
    options.layers = (slc_random_range){6, 16};
    options.bytes_per_s = gbit * 1e9 / 8;
    sluice_status status = slc_random_profile(&options, seed, out);
    return status ? status : slc_profile_set_compressed(*out, true);
}

static double best_uniform_s(const budget_row *row)
{
    double exact = row->exact.step_s, onebit = row->onebit.step_s;
    if (!exact || !onebit) return exact + onebit;
    return exact < onebit ? exact : onebit;
}

static bool is_mixed(const slc_job *job, const budget_row *row)
{
    return row->of[SLC_ONEBIT] && row->of[SLC_ONEBIT] < job->unit_count;
}

static sluice_status plan_at_budget(const slc_study *study, const slc_profile *profile, budget_row *row)
{
    slc_joint_answer answer;
    sluice_status status = slc_study_joint(study, profile, row->limit, false, &answer);
    if (!status) status = slc_simple_plan_fastest_uniform(profile, row->limit, &row->exact);
    if (!status) status = slc_simple_plan_fastest_of(profile, SLC_ONEBIT, row->limit, &row->onebit);
    for (uint32_t u = 0; !status && u < profile->job.unit_count; u++) row->of[answer.plan->strategies[u]]++;
    row->forecast = answer.forecast;
    slc_plan_destroy(answer.plan);
    return status;
}

static void count_row(const slc_job *job, const budget_row *row, totals *t)
{
    double uniform = best_uniform_s(row), step = row->forecast.step_s;
    t->rows++;
    t->slower += uniform > 0 && step > uniform * (1 + 1e-9);
    if (!is_mixed(job, row)) return;
    t->mixed++;
    t->mixed_wins += uniform > 0 && step < uniform;
    if (uniform > 0) t->gain += 1 - step / uniform;
}

static void print_seconds(FILE *out, double seconds)
{
    if (seconds > 0)
        fprintf(out, " %10.3f", seconds);
    else
        fprintf(out, " %10s", "-");
}

static void print_row(const slc_study *study, uint64_t seed, double gbit, const budget_row *row)
{
    double uniform = best_uniform_s(row), step = row->forecast.step_s, gain = uniform > 0 ? 1 - step / uniform : 0;
    uint32_t whole = row->of[SLC_DP] + row->of[SLC_OSS] + row->of[SLC_SDP];
    fprintf(study->out, "%10.0f %7u %7u %7u %10.3f", (double)row->limit / 1e6, row->of[SLC_ONEBIT], whole,
            row->of[SLC_FSDP], step);
    print_seconds(study->out, row->exact.step_s);
    print_seconds(study->out, row->onebit.step_s);
    fprintf(study->out, " %8.1f\n", 100 * gain);
    json_array_append_new(study->rows,
                          json_pack("{s:s, s:I, s:f, s:I, s:i, s:i, s:i, s:f, s:f, s:f, s:f}", "study", "lossy", "seed",
                                    (json_int_t)seed, "gbit_per_s", gbit, "limit_bytes", (json_int_t)row->limit,
                                    "onebit", (int)row->of[SLC_ONEBIT], "sdp", (int)whole, "fsdp",
                                    (int)row->of[SLC_FSDP], "step_s", step, "best_exact_s", row->exact.step_s,
                                    "all_onebit_s", row->onebit.step_s, "gain", gain));
}

static sluice_status study_profile(const slc_study *study, uint64_t seed, double gbit, totals *t)
{
    slc_profile *profile = NULL;
    slc_simple_plan whole = {0};
    uint64_t least = 0, all_sdp = 0;
    sluice_status status = draw(seed, gbit, &profile);
    if (!status) status = slc_simple_plan_range(profile, false, &least, &all_sdp);
    if (!status) status = slc_simple_plan_uniform(profile, SLC_ONEBIT, &slc_scheduler_one_ahead, UINT64_MAX, &whole);
    if (!status)
        fprintf(study->out,
                "\nseed %" PRIu64 ": %u units, %u ranks, %u micro-batch%s, %g Gbit/s\n%10s %7s %7s %7s %10s"
                " %10s %10s %8s\n",
                seed, profile->job.unit_count, profile->job.world, profile->job.micro_batches,
                profile->job.micro_batches == 1 ? "" : "es", gbit, "budget MB", "onebit", "sdp", "fsdp", "step s",
                "exact s", "onebit s", "faster %");
    for (int b = 1; !status && b <= BUDGETS; b++) {
        budget_row row = {.limit = least + (whole.arena_bytes - least) / BUDGETS * (uint64_t)b};
        if (b == BUDGETS) row.limit = whole.arena_bytes;
        status = plan_at_budget(study, profile, &row);
        if (status) break;
        print_row(study, seed, gbit, &row);
        count_row(&profile->job, &row, t);
    }
    slc_profile_destroy(profile);
    return slc_error_context(status, "profile of seed %" PRIu64, seed);
}

sluice_status slc_study_lossy(const slc_study *study)
{
    static const double gbit[] = {1, 4, 10};
    uint32_t profiles = study->count ? study->count : PROFILES;
    totals t = {0};
    sluice_status status = SLUICE_OK;
    fprintf(study->out,
            "units of each strategy in the plan, its step, and the fastest plans of one exact strategy and of"
            " onebit alone that fit ('-': none)\n");
    for (uint32_t i = 0; !status && i < profiles; i++)
        status = study_profile(study, study->seed + i, gbit[i % (sizeof gbit / sizeof *gbit)], &t);
    if (!status)
        fprintf(study->out,
                "\nonebit beside sharded units at %u of %u budgets; there faster than every uniform choice: %u, by "
                "%.1f %% in the mean\nslower than a uniform choice: %u of %u\n",
                t.mixed, t.rows, t.mixed_wins, t.mixed ? 100 * t.gain / t.mixed : 0.0, t.slower, t.rows);
    return status;
}
