/* Copies of the micro-batches of a step, for a pipeline, which has several of them under way: what
 * slc_training_data_take gives is valid until its next call. */
#pragma once

#include <sluice/model.h>

typedef struct slc_step_batches slc_step_batches;

/* Makes room for `count` micro-batches of `batch` sequences of `length` tokens, or images; slc_step_batches_destroy
 * frees it. Errors: MEMORY. */
sluice_status slc_step_batches_create(const sluice_model_config *model, uint32_t batch, uint32_t length, uint32_t count,
                                      slc_step_batches **out);
void slc_step_batches_destroy(slc_step_batches *batches); /* NULL is allowed */

/* Bytes that `count` of them take. */
uint64_t slc_step_batches_bytes(const sluice_model_config *model, uint32_t batch, uint32_t length, uint32_t count);

/* Copies a micro-batch to place `number`. */
void slc_step_batches_put(slc_step_batches *batches, uint32_t number, const sluice_batch *batch);
/* All of them, in order. */
const sluice_batch *slc_step_batches_all(const slc_step_batches *batches);
