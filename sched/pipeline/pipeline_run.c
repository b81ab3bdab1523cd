/* Plans for pipelines that run, by the planner on paper. Times are those that sizes suggest, or that the program gives.
 * tests/engine/pipeline_test.c covers this file. */
#include "sched/pipeline/pipeline_run.h"

#include "lib/base/status.h"
#include "lib/plan/stages.h"
#include "sched/pipeline/pipeline_plan.h"
#include "sched/pipeline/stage_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The request ---- */

static bool runs(const slc_pipeline_schedule *schedule)
{
    return schedule->flushes && !schedule->splits;
}

static sluice_status find_schedule(const char *name, const slc_pipeline_schedule **out)
{
    *out = slc_pipeline_schedule_find(name);
    if (*out && runs(*out)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "pipeline schedule \"%s\": %s; gpipe, 1f1b and interleaved run", name,
                     *out ? "it is planned and simulated, and does not run yet" : "there is none of that name");
}

static sluice_status find_strategy(const slc_job *job, const char *name, slc_strategy *out)
{
    *out = SLC_STRATEGIES;
    if (strcmp(name, "auto") && !slc_strategy_parse(name, out))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "strategy \"%s\": the units of a pipeline all have one of dp, oss, sdp, fsdp and onebit, or "
                         "each its own under auto",
                         name);
    if (*out == SLC_ONEBIT && !job->compressed) *out = SLC_DP;
    /* A single rank has nobody to gather values from. */
    if (*out == SLC_FSDP && job->world == 1) *out = SLC_SDP;
    return SLUICE_OK;
}

static sluice_status make_shape(const slc_job *job, const slc_stages_request *request, slc_pipeline_shape *out)
{
    const slc_pipeline_schedule *schedule;
    sluice_status status = find_schedule(request->schedule, &schedule);
    if (status) return status;
    *out = (slc_pipeline_shape){request->stages,
                                request->chunks     ? request->chunks
                                : schedule->chunked ? 2
                                                    : 1,
                                job->micro_batches};
    status = slc_pipeline_check(schedule, out);
    if (status || slc_pipeline_pieces(out) <= SLC_PIECES_MAX) return status;
    return slc_error(SLUICE_ERR_ARGUMENT, "%u stages of %u chunks: at most %d pieces run", out->stages, out->chunks,
                     SLC_PIECES_MAX);
}

/* ---- Cuts ---- */

/* Replicas of a stage use the network that stages use. */
static void take_measured(const slc_job *job, const slc_stages_times *measured, slc_times *times)
{
    const double *slot_s = measured->slot_s;
    memcpy(times->slot_s, slot_s, slc_job_slots(job) * sizeof *slot_s);
    memcpy(times->recompute_s, slot_s, job->layer_count * sizeof *slot_s); /* the forward once more */
    if (measured->update_s_per_element > 0) times->update_s_per_element = measured->update_s_per_element;
    if (measured->channel.bytes_per_s > 0)
        times->link.channel = times->link.reduce_scatter = times->link.all_gather = measured->channel;
}

/* Copies what was planned. */
static void take_plan(const slc_pipeline_plan *plan, const slc_job *job, const slc_pipeline_shape *shape,
                      slc_stages_cut *out)
{
    snprintf(out->schedule, sizeof out->schedule, "%s", plan->staged->schedule);
    out->chunks = shape->chunks;
    out->recompute = plan->recompute;
    memcpy(out->strategies, plan->staged->strategies, job->unit_count * sizeof *out->strategies);
    memcpy(out->held, plan->staged->held, job->unit_count * sizeof *out->held);
    memcpy(out->first_layer, plan->first_layer, slc_pipeline_pieces(shape) * sizeof *plan->first_layer);
    out->step_s = plan->forecast.step_s;
    for (uint32_t s = 0; s < shape->stages; s++) {
        const slc_stage_forecast *stage = &plan->forecast.stages[s];
        out->steps[s] = (slc_stage_step){stage->compute_s, stage->idle_s, stage->exposed_s,
                                         stage->messages_s + stage->operations_s};
    }
}

/* ---- A plan that is kept ---- */

static sluice_status check_kept(const slc_stages_request *request, const slc_pipeline_request *made,
                                const slc_pipeline_plan *plan)
{
    const uint32_t stages = made->shape.stages;
    if (stages != request->stages)
        return slc_error(SLUICE_ERR_ARGUMENT, "the plan is of %u stages; start as many", stages);
    if (slc_pipeline_pieces(&made->shape) > SLC_PIECES_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "the plan has more than %d pieces", SLC_PIECES_MAX);
    for (uint32_t s = 0; request->budget_bytes && s < stages; s++)
        if (plan->bytes[s] > request->budget_bytes)
            return slc_error(SLUICE_ERR_BUDGET, "stage %u of the plan needs %llu bytes, the budget has %llu", s,
                             (unsigned long long)plan->bytes[s], (unsigned long long)request->budget_bytes);
    return SLUICE_OK;
}

/* Reads the plan, as far as it runs. The caller frees it, after an error too. */
static sluice_status read_kept(const slc_profile *profile, const slc_stages_request *request,
                               slc_pipeline_request *made, slc_pipeline_plan *plan)
{
    const slc_pipeline_schedule *schedule;
    sluice_status status = slc_pipeline_plan_from_text(profile, request->kept, strlen(request->kept), made, plan);
    if (!status) status = find_schedule(plan->staged->schedule, &schedule);
    return status ? status : check_kept(request, made, plan);
}

static sluice_status cut_as_kept(const slc_job *job, const slc_stages_request *request, slc_stages_cut *out)
{
    slc_profile profile = {.job = *job};
    slc_pipeline_request made;
    slc_pipeline_plan plan = {0};
    *out = (slc_stages_cut){.timed = request->times};
    sluice_status status = slc_stages_cut_make_room(out, job->unit_count, request->stages);
    if (!status) status = slc_times_estimate(job, &profile.times);
    if (!status && out->timed) take_measured(job, request->times, &profile.times);
    if (!status) status = read_kept(&profile, request, &made, &plan);
    if (!status) take_plan(&plan, job, &made.shape, out);
    slc_pipeline_plan_fini(&plan);
    slc_times_fini(&profile.times);
    return status;
}

/* ---- Planning ---- */

sluice_status slc_pipeline_cut(const slc_job *job, const slc_stages_request *request, slc_stages_cut *out)
{
    if (request->kept) return cut_as_kept(job, request, out);
    slc_profile profile = {.job = *job};
    slc_pipeline_request asked = {.profile = &profile,
                                  .schedule = slc_pipeline_schedule_find(request->schedule),
                                  .recompute = request->recompute,
                                  .budget_bytes = request->budget_bytes};
    slc_pipeline_plan plan = {0};
    *out = (slc_stages_cut){0};
    sluice_status status = make_shape(job, request, &asked.shape);
    if (!status) status = slc_stages_cut_make_room(out, job->unit_count, request->stages);
    if (!status) status = find_strategy(job, request->strategy, &asked.strategy);
    if (!status && request->as) {
        asked.first_layer = request->as->first_layer;
        asked.recompute = request->as->recompute;
    } else if (!status && strcmp(request->cuts, "auto")) {
        asked.first_layer = out->first_layer;
        status = slc_error_context(
            slc_pipeline_cuts_read(job, request->cuts, slc_pipeline_pieces(&asked.shape), out->first_layer), "cuts");
    }
    if (!status) status = slc_times_estimate(job, &profile.times);
    out->timed = request->times;
    if (!status && out->timed) take_measured(job, request->times, &profile.times);
    if (!status) status = slc_pipeline_plan_make(&asked, &plan);
    if (!status) take_plan(&plan, job, &asked.shape, out);
    out->needs_bytes = plan.needs_bytes;
    slc_pipeline_plan_fini(&plan);
    slc_times_fini(&profile.times);
    return status;
}

/* ---- A stage ---- */

/* All stages, as they are made. */
typedef struct {
    slc_stage_job *jobs;
    slc_plan **plans;
    uint32_t count;
} stages;

static void free_stages(stages *all)
{
    for (uint32_t s = 0; all->jobs && all->plans && s < all->count; s++) {
        slc_stage_job_fini(&all->jobs[s]);
        slc_plan_destroy(all->plans[s]);
    }
    free(all->jobs);
    free(all->plans);
}

static sluice_status make_stages(const slc_cut_job *cut, stages *all)
{
    slc_pipeline_program program = {0};
    all->jobs = calloc(all->count, sizeof *all->jobs);
    all->plans = calloc(all->count, sizeof(slc_plan *));
    if (!all->jobs || !all->plans) return slc_error(SLUICE_ERR_MEMORY, "%u stages", all->count);
    sluice_status status = slc_pipeline_program_init(cut->schedule, &cut->shape, 1, &program);
    for (uint32_t s = 0; !status && s < all->count; s++) {
        status = slc_stage_job_init(cut, &program, s, &all->jobs[s]);
        if (!status) status = slc_stage_plan(&all->jobs[s], &all->plans[s]);
    }
    slc_pipeline_program_fini(&program);
    return status;
}

static sluice_status check_stages(const stages *all, uint64_t *fingerprint)
{
    const slc_job **jobs = calloc(all->count, sizeof *jobs);
    if (!jobs) return slc_error(SLUICE_ERR_MEMORY, "%u stages", all->count);
    for (uint32_t s = 0; s < all->count; s++) {
        jobs[s] = &all->jobs[s].job;
        *fingerprint = *fingerprint * 31 + slc_plan_fingerprint(all->plans[s]);
    }
    sluice_status status = slc_stages_validate(jobs, (const slc_plan *const *)all->plans, all->count);
    free(jobs);
    return status;
}

/* Names are the whole job's by pointer, so they say which unit and which activation a stage has. */
static sluice_status map_names(const slc_job *whole, const slc_stage_job *stage, slc_stage_answer *out)
{
    const slc_job *job = &stage->job;
    out->layers = calloc((size_t)job->layer_count + 1, sizeof *out->layers);
    out->units = calloc((size_t)job->unit_count + 1, sizeof *out->units);
    out->activations = calloc((size_t)job->activation_count + 1, sizeof *out->activations);
    if (!out->layers || !out->units || !out->activations) return slc_error(SLUICE_ERR_MEMORY, "a stage");
    memcpy(out->layers, stage->layer, job->layer_count * sizeof *out->layers);
    for (uint32_t u = 0; u < job->unit_count; u++)
        while (whole->units[out->units[u]].name != job->units[u].name) out->units[u]++;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        uint32_t *number = &out->activations[a];
        while (*number < whole->activation_count && whole->activations[*number].name != job->activations[a].name)
            ++*number;
        if (*number == whole->activation_count) *number = SLC_NONE;
    }
    return SLUICE_OK;
}

/* Takes a stage out of the plan that was kept. All of it has been validated. */
static sluice_status stage_of_kept(const slc_job *job, const slc_stages_request *request, uint32_t stage,
                                   slc_stage_answer *out)
{
    slc_profile profile = {.job = *job};
    slc_pipeline_request made;
    slc_pipeline_plan plan = {0};
    slc_stage_job *own = calloc(1, sizeof *own);
    *out = (slc_stage_answer){.owner = own};
    sluice_status status = own ? slc_times_estimate(job, &profile.times) : slc_error(SLUICE_ERR_MEMORY, "a stage");
    if (!status) status = read_kept(&profile, request, &made, &plan);
    for (uint32_t s = 0; !status && s < request->stages; s++)
        out->fingerprint = out->fingerprint * 31 + slc_plan_fingerprint(plan.staged->plans[s]);
    if (!status) status = map_names(job, &plan.stages[stage], out);
    if (!status) {
        *own = plan.stages[stage];
        plan.stages[stage] = (slc_stage_job){0};
        out->job = own->job;
        out->plan = plan.staged->plans[stage];
        plan.staged->plans[stage] = NULL;
    }
    slc_pipeline_plan_fini(&plan);
    slc_times_fini(&profile.times);
    if (status) slc_pipeline_stage_free(out);
    return status;
}

sluice_status slc_pipeline_stage(const slc_job *job, const slc_stages_request *request, const slc_stages_cut *cut,
                                 uint32_t stage, slc_stage_answer *out)
{
    if (request->kept) return stage_of_kept(job, request, stage, out);
    slc_profile profile = {.job = *job};
    const slc_cut_job of = {.profile = &profile,
                            .schedule = slc_pipeline_schedule_find(request->schedule),
                            .shape = {request->stages, cut->chunks, job->micro_batches},
                            .first_layer = cut->first_layer,
                            .strategies = cut->strategies,
                            .held = cut->held,
                            .recompute = cut->recompute};
    stages all = {.count = request->stages};
    slc_stage_job *own = calloc(1, sizeof *own);
    *out = (slc_stage_answer){.owner = own};
    sluice_status status = own ? slc_times_estimate(job, &profile.times) : slc_error(SLUICE_ERR_MEMORY, "a stage");
    if (!status) status = make_stages(&of, &all);
    if (!status) status = check_stages(&all, &out->fingerprint);
    if (!status) status = map_names(job, &all.jobs[stage], out);
    if (!status) {
        *own = all.jobs[stage];
        all.jobs[stage] = (slc_stage_job){0};
        out->job = own->job;
        out->plan = all.plans[stage];
        all.plans[stage] = NULL;
    }
    free_stages(&all);
    slc_times_fini(&profile.times);
    if (status) slc_pipeline_stage_free(out);
    return status;
}

void slc_pipeline_stage_free(slc_stage_answer *answer)
{
    if (answer->owner) slc_stage_job_fini(answer->owner);
    free(answer->owner);
    free(answer->layers);
    free(answer->units);
    free(answer->activations);
    *answer = (slc_stage_answer){0};
}
