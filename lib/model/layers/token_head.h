/* The last layer if every position answers with a token: its table of tensors and its lists of operations. */
#ifndef SLC_MODEL_TOKEN_HEAD_H
#define SLC_MODEL_TOKEN_HEAD_H

#include "lib/model/state.h"

/* Forward is for evaluation only: in training, backward computes loss and gradient together. */
void slc_token_head_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_token_head_forward(slc_layer_run *run);
sluice_status slc_token_head_backward(slc_layer_run *run);

#endif
