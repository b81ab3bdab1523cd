/* Plans under simple rules, and summaries. */
#include "bench/study.h"
#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "sched/least_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

sluice_status slc_study_uniform(const slc_profile *profile, slc_strategy strategy, const slc_scheduler *scheduler,
                                uint64_t limit, slc_study_plan *out)
{
    const slc_job *job = &profile->job;
    slc_strategy *strategies = malloc(((size_t)job->unit_count + 1) * sizeof *strategies);
    if (!strategies) return slc_error(SLUICE_ERR_MEMORY, "study");
    for (uint32_t u = 0; u < job->unit_count; u++) strategies[u] = slc_unit_strategy(job, &job->units[u], strategy);
    slc_scheduling in = {.job = job, .strategies = strategies, .times = &profile->times, .limit = limit};
    slc_plan *plan = NULL;
    slc_forecast forecast = {0};
    *out = (slc_study_plan){0};
    sluice_status status = slc_plan_make(&in, scheduler, &plan);
    if (!status) status = slc_simulate(job, &profile->times, plan, NULL, &forecast);
    if (!status) {
        out->arena_bytes = plan->arena_bytes;
        if (plan->arena_bytes <= limit) {
            out->step_s = forecast.step_s;
            out->exposed_s = forecast.exposed_s;
        }
    }
    slc_plan_destroy(plan);
    free(strategies);
    return status;
}

static bool is_peer(const slc_scheduler *scheduler)
{
    return scheduler != &slc_scheduler_ilp && scheduler != &slc_scheduler_random;
}

static void take_faster(const slc_study_plan *plan, slc_study_plan *best)
{
    if (plan->step_s > 0 && (!best->step_s || plan->step_s < best->step_s)) *best = *plan;
}

sluice_status slc_study_best_of(const slc_profile *profile, slc_strategy strategy, uint64_t limit, slc_study_plan *out)
{
    const slc_scheduler *scheduler;
    sluice_status status = SLUICE_OK;
    *out = (slc_study_plan){0};
    for (size_t s = 0; !status && (scheduler = slc_scheduler_at(s)); s++) {
        slc_study_plan one = {0};
        if (is_peer(scheduler)) status = slc_study_uniform(profile, strategy, scheduler, limit, &one);
        take_faster(&one, out);
    }
    return status;
}

sluice_status slc_study_best_uniform(const slc_profile *profile, uint64_t limit, slc_study_plan *out)
{
    sluice_status status = SLUICE_OK;
    *out = (slc_study_plan){0};
    for (int k = 0; !status && k < SLC_EXACT_STRATEGIES; k++) {
        slc_study_plan one;
        status = slc_study_best_of(profile, (slc_strategy)k, limit, &one);
        take_faster(&one, out);
    }
    return status;
}

typedef struct {
    slc_strategy *strategies;
    uint8_t *recompute;
    bool *recomputed;
} choices;

static void choices_fini(choices *c)
{
    free(c->strategies);
    free(c->recompute);
    free(c->recomputed);
}

/* All free. */
static sluice_status choices_init(choices *c, const slc_job *job, bool recompute)
{
    c->strategies = malloc(2 * ((size_t)job->unit_count + 1) * sizeof *c->strategies);
    c->recompute = calloc((size_t)job->layer_count + 1, 1);
    c->recomputed = calloc((size_t)job->layer_count + 1, sizeof *c->recomputed);
    if (!c->strategies || !c->recompute || !c->recomputed) {
        choices_fini(c);
        return slc_error(SLUICE_ERR_MEMORY, "study");
    }
    for (uint32_t u = 0; u < job->unit_count; u++) c->strategies[u] = SLC_STRATEGIES;
    for (uint32_t l = 0; l < job->layer_count; l++)
        c->recompute[l] = recompute && job->can_recompute && job->can_recompute[l] ? 2 : 0;
    return SLUICE_OK;
}

sluice_status slc_study_joint(const slc_study *study, const slc_profile *profile, uint64_t limit, bool recompute,
                              slc_joint_answer *answer)
{
    choices c;
    *answer = (slc_joint_answer){0};
    sluice_status status = choices_init(&c, &profile->job, recompute);
    if (status) return status;
    slc_joint_request ask = {.job = &profile->job,
                             .times = &profile->times,
                             .strategies = c.strategies,
                             .recompute = c.recompute,
                             .limit = limit,
                             .time_limit_s = study->time_limit_s};
    status = slc_joint_plan(&ask, answer, NULL);
    choices_fini(&c);
    return status;
}

sluice_status slc_study_range(const slc_profile *profile, bool recompute, uint64_t *least, uint64_t *all_sdp)
{
    choices c;
    slc_study_plan sdp;
    sluice_status status = choices_init(&c, &profile->job, recompute);
    if (status) return status;
    slc_joint_request ask = {.job = &profile->job,
                             .times = &profile->times,
                             .strategies = c.strategies,
                             .recompute = c.recompute,
                             .limit = UINT64_MAX};
    status = slc_least_memory(&ask, c.strategies + profile->job.unit_count, c.recomputed, least);
    choices_fini(&c);
    if (!status) status = slc_study_uniform(profile, SLC_SDP, &slc_scheduler_one_ahead, UINT64_MAX, &sdp);
    if (!status) *all_sdp = sdp.arena_bytes;
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double slc_study_quantile(double *values, size_t count, double q)
{
    if (!count) return NAN;
    qsort(values, count, sizeof *values, by_value);
    size_t at = (size_t)(q * (double)(count - 1) + 0.5);
    return values[at];
}

double slc_study_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += values[i];
    return count ? sum / (double)count : NAN;
}
