/* The plan of all stages once cuts and strategies are chosen: each stage's plan, how long a step takes, what that is
 * held against, and the plan as a file. staged_plan_test.c covers this file. */
#include "sched/pipeline/planning.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/plan/roles.h"
#include "sched/pipeline/stage_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What it is held against ---- */

/* Finds a lower bound of the step under any cuts. A stage begins with the first micro-batch when all stages before it
 * have computed its forward, computes M micro-batches, and after its last backward those stages compute theirs:
 * whatever the cuts, this adds the time of all layers before the stage. With chunks, with weight gradients that are put
 * off, or where steps run into each other, only the M micro-batches of the slowest stage count. */
static sluice_status find_bound(slc_pipeline_planning *p, double *bound_s)
{
    const slc_pipeline_request *r = p->request;
    const bool whole = r->schedule->flushes && !r->schedule->splits && r->shape.chunks == 1;
    const uint32_t m = r->shape.micro_batches, width = p->layers + 1;
    double *least_s = calloc(2 * (size_t)width, sizeof *least_s), *sum_s = calloc(width, sizeof *sum_s);
    if (!least_s || !sum_s) {
        free(least_s);
        free(sum_s);
        return slc_error(SLUICE_ERR_MEMORY, "bound of %u layers", p->layers);
    }
    for (uint32_t l = 0; l < p->layers; l++) sum_s[l + 1] = sum_s[l] + p->layer_s[l];
    for (uint32_t end = 0; end <= p->layers; end++) least_s[end] = end ? INFINITY : 0;
    for (uint32_t s = 0; s < r->shape.stages; s++) {
        const double *before_s = least_s + (s % 2) * width;
        double *after_s = least_s + ((s + 1) % 2) * width;
        for (uint32_t end = 0; end <= p->layers; end++) {
            after_s[end] = INFINITY;
            for (uint32_t first = 0; first < end; first++)
                after_s[end] = fmin(
                    after_s[end], fmax(before_s[first], (whole ? sum_s[first] : 0) + m * (sum_s[end] - sum_s[first])));
        }
    }
    *bound_s = least_s[(r->shape.stages % 2) * width + p->layers];
    if (r->shape.chunks > 1) *bound_s = m * sum_s[p->layers] / r->shape.stages;
    for (uint32_t l = 0; l < p->layers; l++) *bound_s = fmax(*bound_s, m * p->layer_s[l]);
    free(least_s);
    free(sum_s);
    return SLUICE_OK;
}

/* ---- The plan ---- */

static sluice_status note_choices(slc_pipeline_planning *p)
{
    slc_pipeline_plan *plan = p->plan;
    sluice_status status = slc_staged_plan_create(p->request->schedule->name, p->request->shape.stages,
                                                  p->request->shape.chunks, p->job->unit_count, &plan->staged);
    if (status) return status;
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    memcpy(plan->staged->first_layer, cut.first_layer, p->pieces * sizeof *plan->first_layer);
    for (uint32_t u = 0; u < p->job->unit_count; u++) {
        const bool looks_up = slc_looks_up(&p->job->units[u]);
        plan->staged->strategies[u] = looks_up ? SLC_FSDP : slc_cut_strategy(&cut, u);
        plan->staged->held[u] = !looks_up && slc_cut_holds(&cut, u);
    }
    plan->staged->recompute = cut.recompute;
    return SLUICE_OK;
}

/* Makes the jobs of all stages. */
static sluice_status make_jobs(slc_pipeline_planning *p)
{
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    const uint32_t stages = cut.shape.stages;
    slc_pipeline_plan *plan = p->plan;
    plan->stages = calloc(stages, sizeof *plan->stages);
    plan->jobs = calloc(stages, sizeof *plan->jobs);
    if (!plan->stages || !plan->jobs) return slc_error(SLUICE_ERR_MEMORY, "jobs of %u stages", stages);
    sluice_status status = SLUICE_OK;
    for (uint32_t s = 0; s < stages && !status; s++) {
        status = slc_stage_job_init(&cut, &p->step, s, &plan->stages[s]);
        plan->jobs[s] = &plan->stages[s].job;
    }
    return status;
}

/* Makes the plans of all stages and holds them against each other. */
static sluice_status make_plans(slc_pipeline_planning *p)
{
    slc_pipeline_plan *plan = p->plan;
    sluice_status status = note_choices(p);
    if (!status) status = make_jobs(p);
    for (uint32_t s = 0; !status && s < plan->staged->stages; s++)
        status = slc_stage_plan(&plan->stages[s], &plan->staged->plans[s]);
    return status ? status
                  : slc_stages_validate(plan->jobs, (const slc_plan *const *)plan->staged->plans, plan->staged->stages);
}

/* Finds what stages of unequal replicas would gain, if the schedule does not flush, by PipeDream's programme. */
static sluice_status find_unequal(slc_pipeline_planning *p)
{
    const slc_pipeline_request *r = p->request;
    const uint32_t ranks = r->shape.stages * p->job->world;
    const uint64_t reserved = p->job->reserved_bytes, budget = r->budget_bytes;
    uint64_t *boundary = calloc((size_t)p->layers + 1, sizeof *boundary);
    p->plan->unequal = calloc(ranks, sizeof *p->plan->unequal);
    if (!boundary || !p->plan->unequal) {
        free(boundary);
        return slc_error(SLUICE_ERR_MEMORY, "stages of %u ranks", ranks);
    }
    for (uint32_t l = 0; l < p->layers; l++) {
        boundary[l] = slc_cut_forward_bytes(p->job, l);
        *(r->schedule->updates_each ? &p->kept[l] : &p->fixed[l]) -= p->values[l];
    }
    const slc_steady_partition in = {.chain = {.layers = p->layers,
                                               .layer_s = p->layer_s,
                                               .uncut = p->uncut,
                                               .fixed_bytes = p->fixed,
                                               .value_bytes = p->values,
                                               .kept_bytes = p->kept},
                                     .boundary_bytes = boundary,
                                     .versions = r->schedule->updates_each ? 0 : 2,
                                     .limit_bytes = !budget             ? 0
                                                    : budget > reserved ? budget - reserved
                                                                        : 1,
                                     .micro_batches = r->schedule->updates_each ? 1 : r->shape.micro_batches,
                                     .levels = {{ranks, r->profile->times.link.all_gather.bytes_per_s}}};
    double period_s;
    sluice_status status = slc_partition_steady(&in, p->plan->unequal, &p->plan->unequal_count, &period_s);
    p->plan->unequal_s = period_s * r->shape.micro_batches * p->job->world;
    free(boundary);
    return status;
}

static void count_bytes(slc_pipeline_plan *plan)
{
    for (uint32_t s = 0; s < plan->staged->stages; s++) {
        plan->bytes[s] = plan->staged->plans[s]->arena_bytes + plan->stages[s].job.reserved_bytes;
        plan->older_bytes[s] = plan->stages[s].older_values_bytes;
    }
}

/* Simulates the plan whose stages are there, and finds what it is held against. */
static sluice_status tell_times(slc_pipeline_planning *p)
{
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    slc_pipeline_plan *plan = p->plan;
    count_bytes(plan);
    plan->recompute = cut.recompute;
    memcpy(plan->first_layer, cut.first_layer, p->pieces * sizeof *plan->first_layer);
    sluice_status status = slc_pipeline_costs_init(&cut, &plan->costs);
    if (!status) status = slc_pipeline_simulate(&plan->program, &plan->costs.times, NULL, &plan->forecast);
    slc_pipeline_planning_describe(p);
    if (!status) status = find_bound(p, &plan->bound_s);
    return status || p->request->schedule->flushes ? status : find_unequal(p);
}

sluice_status slc_pipeline_planning_finish(slc_pipeline_planning *p)
{
    slc_pipeline_planning_copy(p, &p->best, &p->trial);
    sluice_status status = make_plans(p);
    return status ? status : tell_times(p);
}

/* ---- Files ---- */

sluice_status slc_pipeline_plan_text(const slc_pipeline_request *request, const slc_pipeline_plan *plan, char **out)
{
    return slc_staged_plan_to_json(&request->profile->job, plan->jobs, plan->staged, plan->forecast.step_s, out);
}

sluice_status slc_pipeline_plan_write(const slc_pipeline_request *request, const slc_pipeline_plan *plan,
                                      const char *path)
{
    char *text = NULL;
    sluice_status status = slc_pipeline_plan_text(request, plan, &text);
    if (!status) status = slc_json_file_write(path, text);
    free(text);
    return status;
}

/* A plan that is read. */
typedef struct {
    slc_pipeline_planning p;
    slc_pipeline_request *request;
    bool begun;
} reading;

/* Makes the stages' jobs from the choices in a file. */
static sluice_status jobs_of_choices(void *context, const slc_staged_plan *choices, const slc_job **jobs)
{
    reading *r = context;
    slc_pipeline_request *request = r->request;
    request->schedule = slc_pipeline_schedule_find(choices->schedule);
    request->shape = (slc_pipeline_shape){choices->stages, choices->chunks, request->profile->job.micro_batches};
    request->first_layer = choices->first_layer;
    request->recompute = choices->recompute;
    if (!request->schedule)
        return slc_error(SLUICE_ERR_FORMAT, "no schedule \"%s\"; there are %s", choices->schedule,
                         slc_pipeline_schedule_names());
    for (uint32_t u = 0; u < choices->unit_count && !request->schedule->flushes; u++)
        if (!slc_looks_up(&request->profile->job.units[u]) && choices->strategies[u] >= SLC_FSDP)
            request->strategy = choices->strategies[u]; /* which is refused */
    r->begun = true;
    sluice_status status = slc_pipeline_planning_init(&r->p, request, r->p.plan);
    if (status) return status;
    slc_pipeline_planning *p = &r->p;
    const slc_pipeline_planning_choice chosen = {.first_layer = choices->first_layer,
                                                 .strategies = choices->strategies,
                                                 .held = choices->held,
                                                 .recompute = choices->recompute};
    slc_pipeline_planning_copy(p, &chosen, &p->trial);
    status = make_jobs(p);
    if (!status) memcpy(jobs, p->plan->jobs, choices->stages * sizeof *jobs);
    return status;
}

sluice_status slc_pipeline_plan_from_text(const slc_profile *profile, const char *text, size_t length,
                                          slc_pipeline_request *request, slc_pipeline_plan *out)
{
    reading r = {.request = request};
    slc_staged_plan *staged;
    r.p.plan = out;
    *out = (slc_pipeline_plan){0};
    *request = (slc_pipeline_request){.profile = profile, .strategy = SLC_STRATEGIES};
    sluice_status status = slc_staged_plan_from_json(&profile->job, text, length, jobs_of_choices, &r, &staged);
    if (!status) {
        out->staged = staged;
        status = tell_times(&r.p);
        request->first_layer = out->first_layer;
    }
    if (r.begun) slc_pipeline_planning_fini(&r.p);
    return status;
}

sluice_status slc_pipeline_plan_read(const slc_profile *profile, const char *path, slc_pipeline_request *request,
                                     slc_pipeline_plan *out)
{
    char *text;
    size_t length;
    *out = (slc_pipeline_plan){0};
    sluice_status status = slc_json_file_read(path, &text, &length);
    if (status) return status;
    status = slc_error_context(slc_pipeline_plan_from_text(profile, text, length, request, out), "plan %s", path);
    free(text);
    return status;
}

void slc_pipeline_plan_fini(slc_pipeline_plan *plan)
{
    for (uint32_t s = 0; plan->stages && s < plan->program.shape.stages; s++) slc_stage_job_fini(&plan->stages[s]);
    free(plan->stages);
    free(plan->jobs);
    slc_staged_plan_destroy(plan->staged);
    free(plan->unequal);
    slc_pipeline_forecast_fini(&plan->forecast);
    slc_pipeline_costs_fini(&plan->costs);
    slc_pipeline_program_fini(&plan->program);
    free(plan->older_bytes);
    free(plan->bytes);
    free(plan->first_layer);
    *plan = (slc_pipeline_plan){0};
}
