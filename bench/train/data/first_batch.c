/* tests/command/gpt2_equality_test.sh covers this file. */
#include "bench/train/data/first_batch.h"

#include "bench/cli/output/result_file.h"
#include "lib/base/status.h"

#include <jansson.h>
#include <stdlib.h>

enum { NOT_ASKED = -100 /* as Hugging Face's labels */ };

static json_t *row_json(const int32_t *tokens, uint32_t count)
{
    json_t *row = json_array();
    for (uint32_t i = 0; row && i < count; i++)
        if (json_array_append_new(row, json_integer(tokens[i] < 0 ? NOT_ASKED : tokens[i]))) {
            json_decref(row);
            return NULL;
        }
    return row;
}

static sluice_status append_batch(const slc_training_first_batch *step, const sluice_batch *batch, json_t *inputs,
                                  json_t *targets)
{
    uint32_t each = sluice_model_targets(step->model, step->length);
    int failed = 0;
    for (uint32_t b = 0; !failed && b < step->batch; b++) {
        failed = json_array_append_new(inputs, row_json(batch->tokens + (size_t)b * step->length, step->length));
        if (!failed) failed = json_array_append_new(targets, row_json(batch->targets + (size_t)b * each, each));
    }
    return failed ? slc_error(SLUICE_ERR_MEMORY, "--first-batch") : SLUICE_OK;
}

sluice_status slc_training_first_batch_write(slc_training_data *data, const slc_training_first_batch *step,
                                             const char *path)
{
    json_t *inputs = json_array(), *targets = json_array();
    sluice_status status = SLUICE_OK;
    for (uint64_t i = 0; !status && i < step->ranks * step->micro_batches; i++) {
        sluice_batch batch;
        status = slc_training_data_take(data, false, step->first + i * step->batch, &batch);
        if (!status && !batch.tokens)
            status = slc_error(SLUICE_ERR_UNSUPPORTED, "--first-batch: it writes tokens, and this model sees images");
        if (!status) status = append_batch(step, &batch, inputs, targets);
    }
    json_t *all = json_pack("{s:o, s:o}", "input_ids", inputs, "targets", targets);
    char *text = all && !status ? json_dumps(all, JSON_COMPACT) : NULL;
    if (!status && !text) status = slc_error(SLUICE_ERR_MEMORY, "--first-batch");
    if (!status) status = slc_error_context(slc_result_file_write_text(path, text), "--first-batch");
    free(text);
    json_decref(all);
    return status;
}
