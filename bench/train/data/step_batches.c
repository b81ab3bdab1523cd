/* step_batches_test.c covers this file. */
#include "bench/train/data/step_batches.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 6, LINE = 64 };

struct slc_step_batches {
    sluice_model_config model;
    uint32_t batch, length;
    uint64_t each; /* bytes of one micro-batch */
    sluice_batch *batches;
    unsigned char *memory;
};

/* Bytes of the arrays of a micro-batch, in the order in which they lie. */
static void sizes_of(const sluice_model_config *model, uint32_t batch, uint32_t length, uint64_t bytes[ARRAYS])
{
    const uint64_t rows = (uint64_t)batch * sluice_model_tokens(model, length);
    const uint64_t pixels = (uint64_t)batch * model->image_channels * model->image_size * model->image_size;
    const bool sees = model->image_size > 0;
    bytes[0] = bytes[1] = sees ? 0 : rows * sizeof(int32_t);
    bytes[2] = sees ? 0 : rows;
    bytes[3] = sees ? pixels * sizeof(float) : 0;
    bytes[4] = sees ? rows - batch : 0;
    bytes[5] = (uint64_t)batch * sluice_model_targets(model, length) * sizeof(int32_t);
}

static uint64_t room_for(uint64_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static uint64_t bytes_of_each(const sluice_model_config *model, uint32_t batch, uint32_t length)
{
    uint64_t bytes[ARRAYS], sum = 0;
    sizes_of(model, batch, length, bytes);
    for (int i = 0; i < ARRAYS; i++) sum += room_for(bytes[i]);
    return sum;
}

uint64_t slc_step_batches_bytes(const sluice_model_config *model, uint32_t batch, uint32_t length, uint32_t count)
{
    return count * bytes_of_each(model, batch, length);
}

sluice_status slc_step_batches_create(const sluice_model_config *model, uint32_t batch, uint32_t length, uint32_t count,
                                      slc_step_batches **out)
{
    slc_step_batches *made = calloc(1, sizeof *made);
    if (!made) return slc_error(SLUICE_ERR_MEMORY, "micro-batches of a step");
    made->model = *model;
    made->batch = batch;
    made->length = length;
    made->each = bytes_of_each(model, batch, length);
    made->batches = calloc(count, sizeof *made->batches);
    made->memory = malloc(made->each * count + 1);
    if (made->batches && made->memory) {
        *out = made;
        return SLUICE_OK;
    }
    slc_step_batches_destroy(made);
    return slc_error(SLUICE_ERR_MEMORY, "%u micro-batches", count);
}

void slc_step_batches_destroy(slc_step_batches *batches)
{
    if (!batches) return;
    free(batches->batches);
    free(batches->memory);
    free(batches);
}

static const void *copy_array(unsigned char **at, const void *from, uint64_t bytes)
{
    unsigned char *to = *at;
    *at += room_for(bytes);
    return from ? memcpy(to, from, bytes) : NULL;
}

void slc_step_batches_put(slc_step_batches *batches, uint32_t number, const sluice_batch *batch)
{
    uint64_t bytes[ARRAYS];
    unsigned char *at = batches->memory + number * batches->each;
    sluice_batch *kept = &batches->batches[number];
    sizes_of(&batches->model, batch->sequences ? (uint32_t)batch->sequences : batches->batch,
             batch->length ? batch->length : batches->length, bytes);
    *kept = *batch;
    kept->tokens = copy_array(&at, batch->tokens, bytes[0]);
    kept->types = copy_array(&at, batch->types, bytes[1]);
    kept->attention_mask = copy_array(&at, batch->attention_mask, bytes[2]);
    kept->pixels = copy_array(&at, batch->pixels, bytes[3]);
    kept->masked_patches = copy_array(&at, batch->masked_patches, bytes[4]);
    kept->targets = copy_array(&at, batch->targets, bytes[5]);
}

const sluice_batch *slc_step_batches_all(const slc_step_batches *batches)
{
    return batches->batches;
}
