/* The kinds of layers, each with its table of tensors and its lists of operations. */
#pragma once

#include "lib/model/state.h"

/* The first layer. */
void slc_embed_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_embed_forward(slc_layer_run *run);
sluice_status slc_embed_backward(slc_layer_run *run);

/* A transformer block. */
void slc_block_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_block_forward(slc_layer_run *run);
sluice_status slc_block_recompute(slc_layer_run *run); /* the beginning of forward: computes all that backward reads */
sluice_status slc_block_backward(slc_layer_run *run);

/* The last layer, if every position answers with a token and if the whole input has one class. Forward is for
 * evaluation only: in training, backward computes loss and gradient together. */
void slc_token_head_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_token_head_forward(slc_layer_run *run);
sluice_status slc_token_head_backward(slc_layer_run *run);
void slc_class_head_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_class_head_forward(slc_layer_run *run);
sluice_status slc_class_head_backward(slc_layer_run *run);
