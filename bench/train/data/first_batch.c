/* tests/command/train/gpt2_equality_test.sh covers this file. */
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

/* The arrays of one step. Those that its micro-batches do not have are NULL. */
typedef struct {
    json_t *inputs, *targets, *mask, *types;
} step_arrays;

static json_t *bytes_json(const uint8_t *values, uint32_t count)
{
    json_t *row = json_array();
    for (uint32_t i = 0; row && i < count; i++)
        if (json_array_append_new(row, json_integer(values[i]))) {
            json_decref(row);
            return NULL;
        }
    return row;
}

static sluice_status append_batch(const slc_training_first_batch *step, const sluice_batch *batch, step_arrays *to)
{
    const uint32_t length = batch->length ? batch->length : step->length;
    const uint32_t each = sluice_model_targets(step->model, length);
    const uint64_t sequences = batch->sequences ? batch->sequences : step->batch;
    int failed = 0;
    if (batch->attention_mask && !to->mask) failed = !(to->mask = json_array());
    if (batch->types && !to->types) failed |= !(to->types = json_array());
    for (uint64_t b = 0; !failed && b < sequences; b++) {
        const size_t at = (size_t)b * length;
        failed = json_array_append_new(to->inputs, row_json(batch->tokens + at, length));
        if (!failed) failed = json_array_append_new(to->targets, row_json(batch->targets + (size_t)b * each, each));
        if (!failed && to->mask)
            failed = json_array_append_new(to->mask, bytes_json(batch->attention_mask + at, length));
        if (!failed && to->types) failed = json_array_append_new(to->types, row_json(batch->types + at, length));
    }
    return failed ? slc_error(SLUICE_ERR_MEMORY, "--first-batch") : SLUICE_OK;
}

static sluice_status step_json(slc_training_data *data, const slc_training_first_batch *step, uint64_t first,
                               json_t **out)
{
    step_arrays to = {json_array(), json_array(), NULL, NULL};
    sluice_status status = to.inputs && to.targets ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "--first-batch");
    for (uint64_t i = 0; !status && i < step->ranks * step->micro_batches; i++) {
        sluice_batch batch;
        status = slc_training_data_take(data, SLC_DATA_TRAIN, first + i * step->batch, &batch);
        if (!status && !batch.tokens)
            status = slc_error(SLUICE_ERR_UNSUPPORTED, "--first-batch: it writes tokens, and this model sees images");
        if (!status) status = append_batch(step, &batch, &to);
    }
    *out = json_pack("{s:o, s:o, s:o*, s:o*}", "input_ids", to.inputs, "targets", to.targets, "attention_mask", to.mask,
                     "token_type_ids", to.types);
    return status || *out ? status : slc_error(SLUICE_ERR_MEMORY, "--first-batch");
}

sluice_status slc_training_first_batch_write(slc_training_data *data, const slc_training_first_batch *step,
                                             const char *path)
{
    const uint64_t each = step->ranks * step->micro_batches * step->batch;
    json_t *all = NULL, *list = step->steps > 1 ? json_array() : NULL;
    sluice_status status = SLUICE_OK;
    for (uint64_t s = 0; !status && s < step->steps; s++) {
        json_t *one = NULL;
        status = step_json(data, step, step->first + s * each, &one);
        if (!list) all = one;
        if (list && json_array_append_new(list, one) && !status) status = slc_error(SLUICE_ERR_MEMORY, "--first-batch");
    }
    if (list) all = json_pack("{s:o}", "steps", list);
    char *text = all && !status ? json_dumps(all, JSON_COMPACT) : NULL;
    if (!status && !text) status = slc_error(SLUICE_ERR_MEMORY, "--first-batch");
    if (!status) status = slc_error_context(slc_result_file_write_text(path, text), "--first-batch");
    free(text);
    json_decref(all);
    return status;
}
