/* bench/train/train_run_test.c and tests/command/train/train_test.sh cover this file. */
#include "bench/train/run/finish.h"

#include "bench/cli/output/result_file.h"
#include "bench/train/saved_weights.h"
#include "bench/train/summary.h"
#include "bench/train/options/people.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"

#include <sluice/trace.h>
#include <stdlib.h>

/* Gathers the error of a file that cannot be written, so that the other outputs are written all the same. */
static sluice_status without_it(slc_outcome *outputs, sluice_status status)
{
    status = slc_path_was_good(status);
    if (status != SLUICE_ERR_IO) return status;
    slc_outcome_add(outputs, status);
    return SLUICE_OK;
}

static sluice_status save_weights(const slc_run_ended *run, slc_training_result *result)
{
    const slc_saved_weights saved = {
        run->world, run->options, run->model, run->data, run->watch ? run->watch->stops : NULL, NULL};
    sluice_status status = slc_saved_weights_write(&saved);
    result->weights_saved = !status;
    return without_it(&result->outputs, status);
}

static sluice_status write_trace(const slc_run_ended *run)
{
    char *text;
    sluice_status status = sluice_runtime_trace(run->rt, &text);
    if (!status && text) status = slc_result_file_write_text(run->options->trace, text);
    free(text);
    return status;
}

/* Adds up what the ranks took of records. */
static sluice_status count_examples(const slc_run_ended *run, slc_training_result *result)
{
    const slc_training_data_counts own = slc_training_data_get_counts(run->data);
    double sums[] = {(double)own.examples, (double)own.cut, (double)own.replaced, (double)own.tokens,
                     (double)own.places};
    for (size_t i = 0; !run->place->has_head && i < sizeof sums / sizeof *sums; i++) sums[i] = 0;
    sluice_status status = sluice_world_all_reduce(run->world, sums, sizeof sums / sizeof *sums);
    result->examples = (slc_training_data_counts){.examples = (uint64_t)sums[0],
                                                  .cut = (uint64_t)sums[1],
                                                  .replaced = (uint64_t)sums[2],
                                                  .tokens = (uint64_t)sums[3],
                                                  .places = (uint64_t)sums[4]};
    if (sums[0] > 0) result->tokens_per_s *= sums[3] / (sums[0] * run->place->length); /* not of padding */
    return status;
}

static sluice_status take_trials(const sluice_runtime *rt, slc_training_result *result)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t n = sluice_runtime_trial_count(rt); !status && result->trial_count < n; result->trial_count++) {
        sluice_plan_trial *trial = &result->trials[result->trial_count];
        *trial = SLUICE_INIT(sluice_plan_trial);
        status = sluice_runtime_trial(rt, result->trial_count, trial);
    }
    return status;
}

sluice_status slc_run_finish(const slc_run_ended *run, slc_training_result *result)
{
    const slc_training_options *o = run->options;
    sluice_status status = slc_training_summarise(result);
    if (!status) status = count_examples(run, result);
    result->prediction = SLUICE_INIT(sluice_prediction);
    if (!status) status = sluice_runtime_prediction(run->rt, &result->prediction);
    if (!status && o->save_weights) status = save_weights(run, result);
    if (!status)
        status = without_it(&result->outputs, slc_training_observer_draw(run->observer, slc_training_people(o)));
    if (!status && o->eval_batches && !result->interrupted)
        status = slc_run_evaluation_take(run->evaluation, &result->evaluation_loss, &result->accuracy);
    if (!status && !o->no_hash) status = sluice_runtime_weights_sha256(run->rt, result->weights_sha256);
    result->device = sluice_runtime_device(run->rt);
    result->memory = SLUICE_INIT(sluice_memory_report);
    if (!status) status = sluice_runtime_memory(run->rt, &result->memory);
    if (!status)
        status = slc_stage_notes_gather(run->stages, run->rt, (uint32_t)o->micro_batches, &result->prediction,
                                        &result->memory, &result->pipeline);
    if (!status) status = take_trials(run->rt, result);
    if (!status && o->trace) status = without_it(&result->outputs, write_trace(run));
    if (!status && run->watch && run->watch->finished) status = run->watch->finished(run->rt, run->watch->context);
    return status;
}
