/* Plans a pipeline and finds what its step is made of. tests/command/plan/pipeline_command_test.sh covers this file. */
#include "bench/plan/pipeline/pipelined.h"

#include "bench/cli/output/result_file.h"
#include "bench/plan/words/budget_text.h"
#include "lib/base/status.h"
#include "sched/planner.h"
#include "sched/scheduler.h"
#include "sched/pipeline/pipeline_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint8_t read_recompute(const char *recompute)
{
    return !recompute || !strcmp(recompute, "none") ? 0 : !strcmp(recompute, "all") ? 1 : 2;
}

static sluice_status read_choices(const char *strategy, const char *recompute, slc_pipeline_request *request)
{
    request->recompute = read_recompute(recompute);
    if (!strategy || !strcmp(strategy, "auto")) return SLUICE_OK;
    if (slc_strategy_parse(strategy, &request->strategy)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--strategy %s: with --pipeline give auto, dp, oss, sdp, fsdp or onebit",
                     strategy);
}

/* Simulates a step with these times; *most_s is what the stage computes that computes longest. */
static sluice_status simulate(const slc_pipelined *made, const slc_pipeline_times *times, double *step_s,
                              double *most_s)
{
    slc_pipeline_forecast forecast;
    sluice_status status = slc_pipeline_simulate(&made->plan.program, times, NULL, &forecast);
    *step_s = forecast.step_s;
    *most_s = 0;
    for (uint32_t s = 0; !status && s < made->request.shape.stages; s++)
        *most_s = fmax(*most_s, forecast.stages[s].compute_s);
    slc_pipeline_forecast_fini(&forecast);
    return status;
}

/* Finds the parts of the step by simulating it again: without the operations of stages, then without messages too. */
static sluice_status divide_step(slc_pipelined *made)
{
    slc_pipeline_parts *parts = &made->parts;
    slc_pipeline_times times = made->plan.costs.times;
    double bare_s = 0, with_messages_s = 0, most_s;
    times.operation_count = times.gather_count = 0;
    sluice_status status = simulate(made, &times, &with_messages_s, &most_s);
    times.forward_message_s = times.backward_message_s = NULL;
    times.latency_s = times.rows_s = 0;
    if (!status) status = simulate(made, &times, &bare_s, &most_s);
    parts->slowest_s = most_s;
    parts->filling_s = fmax(0, bare_s - most_s);
    parts->messages_s = fmax(0, with_messages_s - bare_s);
    parts->operations_s = fmax(0, made->plan.forecast.step_s - with_messages_s);
    return status;
}

/* ---- Without a pipeline ---- */

/* Nominal seconds of planning for each layer: with fewer the planner has only its first plans, with ten times as many a
 * step of gpt2-small differs by less than a thousandth. */
static const double RIVAL_EFFORT_S = 0.004;

/* Plans the profile while its world is still all ranks. If no plan fits, `rival` gets no step. */
static sluice_status find_rival(slc_profile *profile, uint32_t micro_batches, uint64_t budget_bytes, uint8_t recompute,
                                slc_pipeline_rival *rival)
{
    slc_job *job = &profile->job;
    uint8_t *layers = calloc((size_t)job->layer_count + 1, sizeof *layers);
    if (!layers) return slc_error(SLUICE_ERR_MEMORY, "%u layers", job->layer_count);
    for (uint32_t l = 0; l < job->layer_count; l++) layers[l] = job->can_recompute[l] ? recompute : 0;
    const slc_plan_request request = {.strategy = "auto",
                                      .schedule = slc_schedule_default,
                                      .recompute = layers,
                                      .times = &profile->times,
                                      .effort_s = RIVAL_EFFORT_S * job->layer_count,
                                      .budget_bytes = budget_bytes};
    slc_plan_answer answer = {0};
    const uint32_t kept = job->micro_batches;
    job->micro_batches = rival->micro_batches = micro_batches;
    sluice_status status = slc_plan_for_budget(job, &request, &answer);
    job->micro_batches = kept;
    free(layers);
    if (status) return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
    rival->step_s = answer.forecast.step_s;
    rival->exposed_s = answer.forecast.exposed_s;
    rival->bytes = answer.plan->arena_bytes + job->reserved_bytes;
    slc_plan_destroy(answer.plan);
    return SLUICE_OK;
}

/* Finds the plan without a pipeline, unless the ranks cannot share the micro-batches evenly. */
static sluice_status find_rival_of(const slc_pipeline_options *options, slc_profile *profile, uint64_t budget_bytes,
                                   uint8_t recompute, slc_pipeline_rival *rival)
{
    const uint32_t own = options->micro_batches ? options->micro_batches : profile->job.micro_batches;
    rival->asked = !options->alone && own % options->stages == 0 && profile->job.world % options->stages == 0;
    return rival->asked ? find_rival(profile, own / options->stages, budget_bytes, recompute, rival) : SLUICE_OK;
}

sluice_status slc_pipelined_without(slc_profile *profile, uint32_t micro_batches, const char *recompute,
                                    const char *budget, slc_pipeline_rival *out)
{
    uint64_t budget_bytes = 0;
    *out = (slc_pipeline_rival){.asked = true};
    sluice_status status = slc_plan_read_budget(&profile->job, budget, &budget_bytes);
    return status ? status : find_rival(profile, micro_batches, budget_bytes, read_recompute(recompute), out);
}

sluice_status slc_pipelined_make(const slc_pipeline_options *options, slc_profile *profile, const char *strategy,
                                 const char *recompute, const char *budget, slc_pipelined *out)
{
    *out = (slc_pipelined){.profile = profile, .ranks = profile->job.world};
    const size_t most_pieces = (size_t)options->stages * (options->chunks ? options->chunks : 2);
    uint64_t budget_bytes = 0;
    out->first_layer = calloc(most_pieces + 1, sizeof *out->first_layer);
    if (!out->first_layer) return slc_error(SLUICE_ERR_MEMORY, "cuts of a pipeline");
    if (options->micro_batches) profile->job.micro_batches = options->micro_batches;
    sluice_status status = slc_plan_read_budget(&profile->job, budget, &budget_bytes);
    if (!status) status = find_rival_of(options, profile, budget_bytes, read_recompute(recompute), &out->rival);
    if (!status) status = slc_pipeline_options_apply(options, profile, out->first_layer, &out->request);
    if (!status) status = read_choices(strategy, recompute, &out->request);
    out->request.budget_bytes = budget_bytes;
    if (!status) status = slc_pipeline_plan_make(&out->request, &out->plan);
    return status ? status : divide_step(out);
}

sluice_status slc_pipelined_read(slc_profile *profile, const char *path, const slc_plan_outline *outline,
                                 slc_pipelined *out)
{
    *out = (slc_pipelined){.profile = profile, .ranks = outline->stages * outline->replicas};
    if (outline->micro_batches) profile->job.micro_batches = outline->micro_batches;
    sluice_status status = slc_profile_set_world(profile, outline->replicas);
    if (!status) status = slc_pipeline_plan_read(profile, path, &out->request, &out->plan);
    return status ? status : divide_step(out);
}

sluice_status slc_pipelined_write(const slc_pipelined *made, const char *path)
{
    char *text = NULL;
    if (!slc_is_standard_output(path)) return slc_pipeline_plan_write(&made->request, &made->plan, path);
    sluice_status status = slc_pipeline_plan_text(&made->request, &made->plan, &text);
    if (!status) status = slc_result_file_write_text(path, text);
    free(text);
    return status;
}

void slc_pipelined_fini(slc_pipelined *made)
{
    slc_pipeline_plan_fini(&made->plan);
    free(made->first_layer);
    *made = (slc_pipelined){0};
}

sluice_status slc_pipelined_trace(const slc_pipelined *made, uint32_t steps, const char *path)
{
    char *text = NULL;
    sluice_status status = slc_pipeline_trace(&made->profile->job, &made->plan, steps, &text);
    if (!status) status = slc_result_file_write_text(path, text);
    free(text);
    return status;
}
