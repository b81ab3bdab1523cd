/* The first layer: its table of tensors and its lists of operations. */
#ifndef SLC_MODEL_EMBED_H
#define SLC_MODEL_EMBED_H

#include "lib/model/state.h"

void slc_embed_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_embed_forward(slc_layer_run *run);
sluice_status slc_embed_backward(slc_layer_run *run);

#endif
