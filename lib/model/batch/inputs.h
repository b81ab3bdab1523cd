/* Reads a batch for a model from a safetensors file under Hugging Face's names: input_ids, attention_mask,
 * token_type_ids, pixel_values, bool_masked_pos, labels. Labels follow Hugging Face too: -100 is ignored; GPT-2's
 * labels are the tokens themselves, each the target of the position before it; for masked patches there is one label
 * for each patch, or one for each masked patch in order. */
#pragma once

#include <sluice/model.h>

typedef struct {
    uint32_t batch, length; /* length is 0 for images */
    sluice_batch given;     /* points into the arrays below */
    int32_t *tokens, *types, *targets;
    uint8_t *attention_mask, *masked_patches;
    float *pixels;
} slc_model_inputs;

/* Frees nothing on an error: the caller calls slc_model_inputs_free after an error too. Errors: those of
 * slc_safetensors_open; MEMORY; FORMAT, with the tensor's name, if a tensor is missing, has another shape than it
 * should or is no input of this model. */
sluice_status slc_model_inputs_read(const char *path, const sluice_model_config *config, slc_model_inputs *out);
void slc_model_inputs_free(slc_model_inputs *inputs);
