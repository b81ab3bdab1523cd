/* Plans a pipeline and finds what its step is made of. tests/command/pipeline_command_test.sh covers this file. */
#include "bench/plan/pipeline/pipelined.h"

#include "bench/cli/output/result_file.h"
#include "bench/plan/words/budget_text.h"
#include "lib/base/status.h"
#include "sched/pipeline/pipeline_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static sluice_status read_choices(const char *strategy, const char *recompute, slc_pipeline_request *request)
{
    request->recompute = !recompute || !strcmp(recompute, "none") ? 0 : !strcmp(recompute, "all") ? 1 : 2;
    if (!strategy || !strcmp(strategy, "auto")) return SLUICE_OK;
    if (slc_strategy_parse(strategy, &request->strategy)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--strategy %s: with --pipeline give auto, dp, oss or sdp", strategy);
}

static sluice_status simulate(const slc_pipelined *made, bool messages, bool operations, double *step_s, double *most_s)
{
    slc_pipeline_times times = made->plan.costs.times;
    slc_pipeline_forecast forecast;
    if (!operations) times.operation_count = 0;
    if (!messages) {
        times.forward_message_s = times.backward_message_s = NULL;
        times.latency_s = times.rows_s = 0;
    }
    sluice_status status = slc_pipeline_simulate(&made->plan.program, &times, NULL, &forecast);
    *step_s = forecast.step_s;
    *most_s = 0;
    for (uint32_t s = 0; !status && s < made->request.shape.stages; s++)
        *most_s = fmax(*most_s, forecast.stages[s].compute_s);
    slc_pipeline_forecast_fini(&forecast);
    return status;
}

static sluice_status divide_step(slc_pipelined *made)
{
    slc_pipeline_parts *parts = &made->parts;
    double bare_s = 0, with_messages_s = 0, most_s;
    sluice_status status = simulate(made, true, false, &with_messages_s, &most_s);
    if (!status) status = simulate(made, false, false, &bare_s, &most_s);
    parts->slowest_s = most_s;
    parts->filling_s = fmax(0, bare_s - most_s);
    parts->messages_s = fmax(0, with_messages_s - bare_s);
    parts->operations_s = fmax(0, made->plan.forecast.step_s - with_messages_s);
    return status;
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
    sluice_status status = slc_profile_set_compressed(profile, false);
    if (!status) status = slc_plan_read_budget(&profile->job, budget, &budget_bytes);
    if (!status) status = slc_pipeline_options_apply(options, profile, out->first_layer, &out->request);
    if (!status) status = read_choices(strategy, recompute, &out->request);
    out->request.budget_bytes = budget_bytes;
    if (!status) status = slc_pipeline_plan_make(&out->request, &out->plan);
    return status ? status : divide_step(out);
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
