/* A transformer block: its table of tensors and its lists of operations. */
#ifndef SLC_MODEL_BLOCK_H
#define SLC_MODEL_BLOCK_H

#include "lib/model/state.h"

void slc_block_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_block_forward(slc_layer_run *run);
sluice_status slc_block_recompute(slc_layer_run *run); /* the beginning of forward: computes all that backward reads */
sluice_status slc_block_backward(slc_layer_run *run);

#endif
