/* Writes what a run trains on in its first steps, so that anyone can see what the model sees, and compute the first
 * loss with another program. Private to bench/train. */
#pragma once

#include "bench/train/data/data.h"

typedef struct {
    uint64_t ranks, micro_batches;
    uint32_t batch, length; /* of a rank's micro-batch */
    uint64_t first;         /* number of the first step's first sequence */
    uint64_t steps;         /* that are written */
    const sluice_model_config *model;
} slc_training_first_batch;

/* Writes {"input_ids": [[...], ...], "targets": [[...], ...]}, with "attention_mask" and "token_type_ids" if the model
 * gets them. The sequences of all ranks and micro-batches come in the order of their numbers. A target of -100 is not
 * asked for, and with classes a sequence has one target. Several steps are {"steps": [{...}, ...]}. The sequences are
 * taken from `data`, on one rank. Errors: those of slc_training_data_take; PATH, IO, MEMORY, UNSUPPORTED (images). */
sluice_status slc_training_first_batch_write(slc_training_data *data, const slc_training_first_batch *step,
                                             const char *path);
