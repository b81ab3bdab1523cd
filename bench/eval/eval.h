/* The two halves of `sluice eval` share its options and its runtime. Private to bench/eval. One thread. */
#pragma once

#include "bench/train/options/options.h"

#include <sluice/world.h>

typedef struct {
    const char *weights, *inputs, *logits, *gradients, *precision, *device, *json;
    uint64_t budget_bytes; /* 0: none */
    uint64_t threads;      /* 0 until the environment has said how many */
    uint32_t stride;
    slc_training_options data; /* weights, data, tokenizer, context, batch, seed */
} slc_eval_options;

typedef struct {
    sluice_model_config config;
    uint32_t length_step; /* of micro-batches; 0: all are of one length */
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
} slc_eval_model;

/* Makes a model of out->config on a runtime of one rank and loads the weights. data_bytes is the memory of the host
 * that data take; the budget counts it too if the model is in the host's memory. With keeps_gradients a step keeps its
 * gradients and updates nothing; otherwise there are no gradients. The caller destroys *out, after an error too.
 * Errors: UNSUPPORTED (several ranks); those of creating a model and of loading weights. */
sluice_status slc_eval_model_create(const slc_eval_options *options, uint32_t batch, uint32_t length,
                                    uint64_t data_bytes, bool keeps_gradients, slc_eval_model *out);
void slc_eval_model_destroy(slc_eval_model *model);

/* Evaluates all of --data and reports it. Errors: those of opening and reading the data, and of the model; PATH, IO. */
sluice_status slc_eval_data(const slc_eval_options *options);
