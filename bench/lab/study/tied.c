/* GPT-2 124M with its token table joint and split, on networks of several ranks and rates: the fastest plan of each at
 * ten budgets, up to the memory that all sdp needs. The case is that of the planner's study: 4,096 tokens on each rank,
 * so that the look-up touches at most 12.6 MB of the table's 154.4; 1.703 s of compute in a step, 50 us for a message,
 * no recomputation. */
#include "bench/lab/study/study.h"
#include "lib/base/status.h"
#include "sched/study/made_profile.h"

#include <math.h>
#include <sluice/runtime.h>
#include <string.h>

enum { BUDGETS = 10, BATCH = 4, CONTEXT = 1024 };
static const double COMPUTE_S = 1.703, LATENCY_S = 50e-6, UPDATE_S_PER_ELEMENT = 2e-11;
static const char TABLE[] = "embed.wte.weight";

typedef struct {
    uint32_t world;
    double gbit_per_s;
    slc_profile *profile[2]; /* by sluice_tied */
    uint64_t least[2], all_sdp[2];
} tied_case;

typedef struct {
    slc_forecast forecast; /* step_s 0: no plan fits */
    slc_strategy table;
} tied_plan;

typedef struct {
    uint32_t rows, faster, slower;
    double gain, exposed[2];
} totals;

/* ---- The profiles ---- */

static double compute_s(const slc_profile *profile)
{
    double sum = 0;
    for (uint32_t s = 0; s < slc_job_slots(&profile->job); s++) sum += profile->times.slot_s[s];
    return sum;
}

/* Finds the device's speed for that compute time, from a profile with a known speed. */
static sluice_status make(const tied_case *c, sluice_tied tied, slc_profile **out)
{
    slc_made_options options = {.model = "gpt2-small",
                                .world = c->world,
                                .batch = BATCH,
                                .context = CONTEXT,
                                .device_flops = 1e12,
                                .efficiency = 1,
                                .bytes_per_s = c->gbit_per_s * 1e9 / 8,
                                .latency_s = LATENCY_S,
                                .update_s_per_element = UPDATE_S_PER_ELEMENT,
                                .tied = tied};
    sluice_status status = slc_made_profile(&options, out);
    if (status) return status;
    options.device_flops *= compute_s(*out) / COMPUTE_S;
    slc_profile_destroy(*out);
    *out = NULL;
    return slc_made_profile(&options, out);
}

static sluice_status case_init(tied_case *c)
{
    sluice_status status = SLUICE_OK;
    for (int t = SLUICE_TIED_JOINT; !status && t <= SLUICE_TIED_SPLIT; t++) {
        status = make(c, (sluice_tied)t, &c->profile[t]);
        if (!status) status = slc_simple_plan_range(c->profile[t], false, &c->least[t], &c->all_sdp[t]);
    }
    return status;
}

/* ---- One budget ---- */

static slc_strategy table_strategy(const slc_job *job, const slc_plan *plan)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (!strcmp(job->units[u].name, TABLE)) return plan->strategies[u];
    return SLC_STRATEGIES;
}

static sluice_status plan_one(const slc_study *study, const tied_case *c, int tied, uint64_t limit, tied_plan *out)
{
    slc_joint_answer answer = {0};
    *out = (tied_plan){0};
    if (limit < c->least[tied]) return SLUICE_OK;
    sluice_status status = slc_study_joint(study, c->profile[tied], limit, false, &answer);
    if (status == SLUICE_ERR_BUDGET) return SLUICE_OK;
    if (status) return status;
    out->forecast = answer.forecast;
    out->table = table_strategy(&c->profile[tied]->job, answer.plan);
    slc_plan_destroy(answer.plan);
    return SLUICE_OK;
}

static void print_plan(FILE *out, const tied_plan *plan)
{
    if (plan->forecast.step_s > 0)
        fprintf(out, " %8.3f %8.3f %-6s", plan->forecast.step_s, plan->forecast.exposed_s,
                slc_strategy_name(plan->table));
    else
        fprintf(out, " %8s %8s %-6s", "-", "-", "");
}

static json_t *plan_json(const tied_plan *plan)
{
    if (!(plan->forecast.step_s > 0)) return json_null();
    return json_pack("{s:f, s:f, s:s}", "step_s", plan->forecast.step_s, "exposed_s", plan->forecast.exposed_s, "table",
                     slc_strategy_name(plan->table));
}

static void report(const slc_study *study, const tied_case *c, int share, uint64_t limit, const tied_plan *plans,
                   totals *t)
{
    const tied_plan *joint = &plans[SLUICE_TIED_JOINT], *split = &plans[SLUICE_TIED_SPLIT];
    bool both = joint->forecast.step_s > 0 && split->forecast.step_s > 0;
    double gain = both ? 1 - split->forecast.step_s / joint->forecast.step_s : NAN;
    fprintf(study->out, "%10.0f %6d", (double)limit / 1e6, share);
    print_plan(study->out, joint);
    print_plan(study->out, split);
    if (both) fprintf(study->out, " %8.1f", 100 * gain);
    fputc('\n', study->out);
    json_array_append_new(study->rows,
                          json_pack("{s:s, s:i, s:f, s:I, s:i, s:o, s:o, s:o}", "study", "tied", "world", (int)c->world,
                                    "gbit_per_s", c->gbit_per_s, "limit_bytes", (json_int_t)limit, "share_percent",
                                    share, "joint", plan_json(joint), "split", plan_json(split), "gain",
                                    both ? json_real(gain) : json_null()));
    if (!both) return;
    t->rows++;
    t->faster += gain > 0.001;
    t->slower += gain < -0.001;
    t->gain += gain;
    for (int i = 0; i < 2; i++) t->exposed[i] += plans[i].forecast.exposed_s;
}

/* ---- All budgets ---- */

static void print_head(FILE *out, const tied_case *c)
{
    fprintf(out,
            "\n%u ranks, %g Gbit/s: the least that works %.0f MB joint, %.0f MB split; all sdp %.0f and %.0f MB\n"
            "%10s %6s %8s %8s %-6s %8s %8s %-6s %8s\n",
            c->world, c->gbit_per_s, (double)c->least[0] / 1e6, (double)c->least[1] / 1e6, (double)c->all_sdp[0] / 1e6,
            (double)c->all_sdp[1] / 1e6, "budget MB", "%", "joint s", "exposed", "table", "split s", "exposed", "table",
            "faster %");
}

static sluice_status one_case(const slc_study *study, uint32_t world, double gbit_per_s, totals *t)
{
    tied_case c = {.world = world, .gbit_per_s = gbit_per_s};
    int budgets = study->count ? (int)study->count : BUDGETS;
    sluice_status status = case_init(&c);
    if (!status) print_head(study->out, &c);
    for (int b = 1; !status && b <= budgets; b++) {
        uint64_t span = c.all_sdp[0] > c.least[0] ? c.all_sdp[0] - c.least[0] : 0;
        uint64_t limit = c.least[0] + (uint64_t)((double)span * b / budgets);
        tied_plan plans[2];
        for (int i = 0; !status && i < 2; i++) status = plan_one(study, &c, i, limit, &plans[i]);
        if (!status) report(study, &c, 100 * b / budgets, limit, plans, t);
    }
    for (int i = 0; i < 2; i++) slc_profile_destroy(c.profile[i]);
    return slc_error_context(status, "%u ranks, %g Gbit/s", world, gbit_per_s);
}

sluice_status slc_study_tied(const slc_study *study)
{
    static const uint32_t worlds[] = {2, 8};
    static const double gbit[] = {1, 4, 10};
    totals t = {0};
    sluice_status status = SLUICE_OK;
    fprintf(study->out,
            "GPT-2 124M, %d x %d tokens a rank, %.3f s of compute: steps and exposed time as predicted, the "
            "table's strategy\n",
            BATCH, CONTEXT, COMPUTE_S);
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++)
        for (size_t g = 0; !status && g < sizeof gbit / sizeof *gbit; g++)
            status = one_case(study, worlds[w], gbit[g], &t);
    if (!status && t.rows)
        fprintf(
            study->out,
            "\nsplit is faster at %u of %u budgets, slower at %u (by more than 0.1 %%); %.1f %% faster in the mean; "
            "exposed %.3f s joint, %.3f s split in the mean\n",
            t.faster, t.rows, t.slower, 100 * t.gain / t.rows, t.exposed[0] / t.rows, t.exposed[1] / t.rows);
    return status;
}
