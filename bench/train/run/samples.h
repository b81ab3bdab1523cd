/* --sample-every N --prompt TEXT: a GPT-2 that trains goes on with the prompt now and then, by the weights that it has.
 * Each token takes an evaluation of one micro-batch on every rank, because the plan has room for nothing else; training
 * is not changed by it. In a pipeline the tokens are chosen where the last layer is, and sent to all. */
#pragma once

#include "bench/train/options/options.h"

enum { SLC_TRAINING_SAMPLE_TOKENS = 32 };

typedef struct slc_training_samples slc_training_samples;

typedef struct {
    sluice_world *world;
    const slc_training_options *options; /* whose weights, tokenizer, prompt and seed count */
    const sluice_model_config *model;
    uint32_t batch, length; /* of a micro-batch */
    int chooser; /* the rank that gets the logits and chooses tokens: 0, or in a pipeline one that holds the last layer
                  */
} slc_training_samples_of;

/* The bytes that samples keep besides the model's, which the caller reserves; the same on every rank. 0: the options
 * ask for no samples. */
uint64_t slc_training_samples_bytes(const slc_training_samples_of *of);

/* Opens the samples, which every rank does for itself. *out is NULL if the options ask for none. Errors: ARGUMENT (the
 * prompt is empty, or as long as a sequence; the tokens have no text), those of reading a tokenizer, MEMORY. */
sluice_status slc_training_samples_open(const slc_training_samples_of *of, slc_training_samples **out);
void slc_training_samples_close(slc_training_samples *samples); /* NULL is allowed */

/* Collective, between steps. *text: prompt and what follows it, on rank 0; "" on the others; valid until the next call.
 * Errors: those of sluice_model_evaluate; NON_FINITE, MEMORY. */
sluice_status slc_training_sample(slc_training_samples *samples, sluice_model *model, const char **text);
