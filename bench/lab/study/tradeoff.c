/* The two expectations that a planner's trade-off rests on, each by itself, and both within one budget. Published
 * models are planned on three clusters, in the simulator:
 *
 * - schedule: all layers are fsdp, and the schedule has more and more memory: more overlap, a shorter step;
 * - strategies: the schedule's memory stays the same, and strategies get more and more: fewer gathers, a shorter step;
 * - both: the schedule has the memory that strategies do not get, which gives a step time for each share.
 *
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/study.h"
#include "lib/base/status.h"
#include "sched/study/published.h"
#include "sched/study/tradeoff.h"

#include <stdlib.h>
#include <string.h>

enum { SHARES = 9, BUDGETS = 2 };
static const double LEVEL = 0.005;       /* shares of the step: changes that count as none */
static const double COMPUTE_RATIO = 0.7; /* computing takes at least so much of the time that communicating takes */

static const struct {
    const char *model, *cluster;
} cases[] = {{"bert-large", "8xcpu-10gbit"}, {"gpt2-xl", "16xV100-25gbit"}, {"llama3-8b", "64xA100-200gbit"}};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct {
    const slc_study *study;
    const slc_profile *profile;
    const slc_tradeoff *shared;
    uint64_t limit;
    slc_forecast schedule[SHARES], strategies[SHARES]; /* step_s 0: no plan fits */
} curves;

static sluice_status make_profile(uint32_t number, slc_profile **out)
{
    const slc_published_options options = {
        .model = cases[number].model, .cluster = cases[number].cluster, .compute_ratio = COMPUTE_RATIO};
    return slc_published_profile(&options, out);
}

static sluice_status plan_for(const curves *c, const slc_strategy *strategies, uint64_t limit, slc_forecast *out)
{
    const slc_joint_request ask = {.job = &c->profile->job,
                                   .times = &c->profile->times,
                                   .strategies = strategies,
                                   .limit = limit,
                                   .effort_s = c->study->effort_s};
    slc_joint_answer answer = {0};
    sluice_status status = slc_joint_plan(&ask, &answer, NULL);
    if (!status) *out = answer.forecast;
    slc_plan_destroy(answer.plan);
    return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
}

/* Point i gives the schedule, or the strategies, i / (SHARES - 1) of what is free. */
static sluice_status make_curves(curves *c)
{
    const slc_tradeoff *t = c->shared;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < SHARES; i++) {
        const slc_tradeoff_point *p = &t->points[i];
        const uint64_t part = (uint64_t)(p->asked * (double)t->free_bytes);
        status = plan_for(c, t->points[0].strategies, t->floor_bytes + part, &c->schedule[i]);
        if (p->same_as != SLC_NONE)
            c->strategies[i] = c->strategies[p->same_as];
        else if (!status)
            status = plan_for(c, p->strategies, c->limit + p->strategy_bytes, &c->strategies[i]);
    }
    return status;
}

/* ---- Rows ---- */

static const char *shape_of(const slc_forecast *curve)
{
    double step_s[SHARES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < SHARES; i++)
        if (curve[i].step_s > 0) step_s[count++] = curve[i].step_s;
    return slc_curve_shape_name(slc_curve_shape_of(step_s, count, LEVEL, NULL));
}

static void print_step(FILE *out, const slc_forecast *f)
{
    if (f->step_s > 0)
        fprintf(out, " %9.3f %9.3f", f->step_s, f->exposed_s);
    else
        fprintf(out, " %9s %9s", "-", "-");
}

static json_t *step_json(const slc_forecast *f)
{
    if (!(f->step_s > 0)) return json_null();
    return json_pack("{s:f, s:f}", "step_s", f->step_s, "exposed_s", f->exposed_s);
}

static sluice_status add_rows(const curves *c)
{
    const slc_tradeoff *t = c->shared;
    FILE *out = c->study->out;
    slc_forecast both[SHARES];
    fprintf(out, "\n%s, %u ranks, %.1f MB, of which %.1f are free\n%8s %19s %19s %19s\n%8s", c->profile->model,
            c->profile->job.world, (double)c->limit / 1e6, (double)t->free_bytes / 1e6, "share", "schedule",
            "strategies", "both", "");
    for (int k = 0; k < 3; k++) fprintf(out, " %9s %9s", "step s", "exposed s");
    fputc('\n', out);
    for (uint32_t i = 0; i < SHARES; i++) {
        const slc_tradeoff_point *p = &t->points[i];
        both[i] = p->fits ? p->forecast : (slc_forecast){0};
        fprintf(out, "%6.1f %%", 100 * p->asked);
        print_step(out, &c->schedule[i]);
        print_step(out, &c->strategies[i]);
        print_step(out, &both[i]);
        fputc('\n', out);
        json_t *row = json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:o}", "study", "tradeoff", "model",
                                c->profile->model, "world", (json_int_t)c->profile->job.world, "limit_bytes",
                                (json_int_t)c->limit, "free_bytes", (json_int_t)t->free_bytes, "asked", p->asked,
                                "share", p->share, "schedule", step_json(&c->schedule[i]), "strategies",
                                step_json(&c->strategies[i]), "both", step_json(&both[i]));
        if (json_array_append_new(c->study->rows, row)) return slc_error(SLUICE_ERR_MEMORY, "study");
    }
    fprintf(out,
            "shape     %19s %19s %19s\nplanned together: step %.3f s, exposed %.3f s, share of strategies %.1f %%\n",
            shape_of(c->schedule), shape_of(c->strategies), shape_of(both), t->joint.forecast.step_s,
            t->joint.forecast.exposed_s, 100 * t->joint.share);
    fflush(out);
    return SLUICE_OK;
}

static sluice_status compare_at_budget(const slc_study *study, const slc_profile *profile, uint64_t limit)
{
    slc_tradeoff shared;
    curves c = {.study = study, .profile = profile, .shared = &shared, .limit = limit};
    const slc_tradeoff_request ask = {
        .job = &profile->job, .times = &profile->times, .limit = limit, .count = SHARES, .effort_s = study->effort_s};
    sluice_status status = slc_tradeoff_make(&ask, &shared);
    if (!status) status = make_curves(&c);
    if (!status) status = add_rows(&c);
    slc_tradeoff_fini(&shared);
    return status;
}

sluice_status slc_study_tradeoff(const slc_study *study)
{
    const uint32_t count = study->count && study->count < CASES ? study->count : CASES;
    const uint32_t budgets = study->budgets ? study->budgets : BUDGETS;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count; i++) {
        slc_profile *profile = NULL;
        uint64_t least = 0, all_sdp = 0;
        status = make_profile(i, &profile);
        if (!status) status = slc_simple_plan_range(profile, false, &least, &all_sdp);
        const uint64_t range = all_sdp > least ? all_sdp - least : 0;
        for (uint32_t b = 0; !status && b < budgets; b++)
            status = compare_at_budget(study, profile, least + range / (budgets + 1) * (b + 1));
        slc_profile_destroy(profile);
        status = slc_error_context(status, "%s on %s", cases[i].model, cases[i].cluster);
    }
    return status;
}
