/* Many tiny layers on a slow link, fused and apart: simulated steps under every baseline and as planned jointly. Which
 * layers are fused is decided once with the profile's times, and once from sizes only, as a run does at commit. */
#include "bench/lab/study/study.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/plan/fused_job.h"
#include "sched/planner.h"
#include "sched/study/random_profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { PROFILES = 40, LAYERS = 48, STREAM = 0x66, WAYS = 2, JOINT = 6, COLUMNS };

typedef struct {
    double sum, worst; /* ratios of the fused step to the step apart */
    uint32_t count, slower;
} ratios;

typedef struct {
    const slc_study *study;
    slc_profile *profile;
    double latency_s;
    ratios of[WAYS][COLUMNS]; /* columns in the order of slc_scheduler_at; ilp's is the joint plan */
    double units[WAYS];
} fusion_study;

static const slc_strategy uniform[] = {SLC_SDP, SLC_FSDP};

static void note(ratios *r, double fused_s, double apart_s)
{
    double ratio = fused_s / apart_s;
    r->sum += ratio;
    if (!r->count++ || ratio > r->worst) r->worst = ratio;
    r->slower += ratio > 1 + 1e-9;
}

/* Draws a latency of 50 to 200 us and 8 to 256 KB of values in each layer, at 1 Gbit/s with 2, 4 or 8 ranks. */
static sluice_status draw_profile(fusion_study *s, uint64_t seed)
{
    slc_random_options options = slc_random_defaults();
    double share = (double)slc_random_below(seed, STREAM, 0, 1001) / 1000;
    s->latency_s = 50e-6 * pow(4, share);
    options.layers = (slc_random_range){LAYERS, LAYERS};
    options.unit_bytes = (slc_random_range){8 << 10, 256 << 10};
    options.compute_ratio = (slc_random_range){0.1, 4};
    options.world = 2u << slc_random_below(seed, STREAM, 1, 3);
    options.bytes_per_s = 125e6;
    options.latency_s = s->latency_s;
    sluice_status status = slc_random_profile(&options, seed, &s->profile);
    if (status) return status;
    for (uint32_t u = 0; u < s->profile->job.unit_count; u++) s->profile->block_bytes[u] = 1 << 20;
    return slc_profile_set_world(s->profile, s->profile->job.world);
}

static sluice_status step_of(const fusion_study *s, const slc_job *job, const slc_scheduler *scheduler,
                             slc_strategy strategy, double *step_s)
{
    slc_profile as_job = *s->profile;
    slc_simple_plan plan = {0};
    as_job.job = *job;
    sluice_status status = slc_simple_plan_uniform(&as_job, strategy, scheduler, UINT64_MAX, &plan);
    *step_s = plan.step_s;
    return status;
}

static sluice_status joint_step_of(const fusion_study *s, const slc_job *job, double *step_s)
{
    slc_profile as_job = *s->profile;
    slc_joint_answer answer = {0};
    as_job.job = *job;
    sluice_status status = slc_study_joint(s->study, &as_job, UINT64_MAX, false, &answer);
    if (!status) *step_s = answer.forecast.step_s;
    slc_plan_destroy(answer.plan);
    return status;
}

/* Compares a schedule's steps with and without the fusion that is chosen for it. */
static sluice_status compare(fusion_study *s, int way, const slc_scheduler *scheduler, ratios *out)
{
    const slc_job *job = &s->profile->job;
    uint32_t *group = calloc((size_t)job->unit_count + 1, sizeof *group);
    slc_fused_job fused = {0};
    slc_plan_request plan = {.strategy = "auto", .schedule = scheduler->name, .times = way ? NULL : &s->profile->times};
    slc_fuse_request request = {.plan = &plan, .bytes = SLC_FUSE_AUTO};
    sluice_status status = group ? slc_fuse_units(job, &request, group) : slc_error(SLUICE_ERR_MEMORY, "groups");
    if (!status) status = slc_fused_job_init(job, group, &fused);
    free(group);
    bool joint = scheduler == &slc_scheduler_ilp;
    for (int k = 0; !status && k < (joint ? 1 : 2); k++) {
        double apart_s = 0, fused_s = 0;
        status = joint ? joint_step_of(s, job, &apart_s) : step_of(s, job, scheduler, uniform[k], &apart_s);
        if (!status)
            status = joint ? joint_step_of(s, &fused.job, &fused_s)
                           : step_of(s, &fused.job, scheduler, uniform[k], &fused_s);
        if (status) break;
        note(out, fused_s, apart_s);
        json_array_append_new(s->study->rows,
                              json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:i, s:i, s:f, s:f}", "study", "fusion",
                                        "decided", way ? "from sizes" : "with times", "schedule", scheduler->name,
                                        "strategy", joint ? "auto" : slc_strategy_name(uniform[k]), "world",
                                        (int)job->world, "latency_s", s->latency_s, "units", (int)job->unit_count,
                                        "fused_units", (int)fused.job.unit_count, "step_s", apart_s, "fused_step_s",
                                        fused_s));
    }
    if (!status && joint) s->units[way] += fused.job.unit_count;
    slc_fused_job_fini(&fused);
    return status;
}

static void print(const fusion_study *s, uint32_t profiles)
{
    fprintf(s->study->out,
            "%u profiles of %d layers of 8 to 256 KiB at 1 Gbit/s and 50 to 200 us: fused over apart\n"
            "%-12s %10s %8s %8s %8s   %10s %8s %8s %8s\n",
            profiles, LAYERS, "schedule", "with times", "mean", "worst", "slower", "from sizes", "mean", "worst",
            "slower");
    const slc_scheduler *scheduler;
    for (size_t i = 0; (scheduler = slc_scheduler_at(i)); i++) {
        if (!s->of[0][i].count) continue;
        fprintf(s->study->out, "%-12s", scheduler->name);
        for (int way = 0; way < WAYS; way++) {
            const ratios *r = &s->of[way][i];
            fprintf(s->study->out, " %10u %8.3f %8.3f %8u  ", r->count, r->sum / r->count, r->worst, r->slower);
        }
        fprintf(s->study->out, "\n");
    }
    fprintf(s->study->out, "units: %.1f and %.1f in the mean\n", s->units[0] / profiles, s->units[1] / profiles);
}

sluice_status slc_study_fusion(const slc_study *study)
{
    uint32_t count = study->count ? study->count : PROFILES;
    fusion_study s = {.study = study};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count; i++) {
        const slc_scheduler *scheduler;
        status = draw_profile(&s, study->seed + i);
        for (int way = 0; !status && way < WAYS; way++)
            for (size_t k = 0; !status && k <= COLUMNS - 1 && (scheduler = slc_scheduler_at(k)); k++)
                if (scheduler != &slc_scheduler_random) status = compare(&s, way, scheduler, &s.of[way][k]);
        slc_profile_destroy(s.profile);
        s.profile = NULL;
        status = slc_error_context(status, "profile of seed %" PRIu64, study->seed + i);
    }
    if (!status) print(&s, count);
    return status;
}
