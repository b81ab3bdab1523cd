/* Tensors of a layer: their lifetimes inside a slot, recorded by running the layer's operations without computing, and
 * their addresses when the operations run. */
#pragma once

#include "lib/kernels/residual/residual.h"
#include "lib/model/state.h"

/* Fills the entries of the table that all layers have. */
void slc_layer_common_tensors(sluice_model *m, slc_model_layer *layer);
static inline uint64_t slc_layer_bytes(const slc_model_layer *layer, uint64_t elements)
{
    return elements * sluice_dtype_bytes(layer->dtype);
}
/* Adds kept tensors to the runtime, runs the lists without computing and adds workspaces. `recompute` may be NULL. */
typedef sluice_status slc_operations(slc_layer_run *run);
sluice_status slc_layer_register_tensors(sluice_model *m, uint32_t number, slc_operations *forward,
                                         slc_operations *recompute, slc_operations *backward);

slc_layer_run slc_layer_run_of(sluice_model *m, uint32_t number, sluice_direction direction);
/* True if the head of a run normalises what the trunk gives it. */
static inline bool slc_layer_norms_trunk(const slc_layer_run *run)
{
    return run->layer->params[SLC_TRUNK_NORM_WEIGHT] != NULL;
}
/* Begins the next operation. */
void slc_layer_run_next(slc_layer_run *run);
/* Returns the tensor's address, valid while the operation runs; NULL for SLC_NO_TENSOR, and while lifetimes are
 * recorded. */
void *slc_layer_run_tensor(slc_layer_run *run, uint32_t tensor);
/* Returns the scratch of this operation, or records that it needs `bytes`. */
void *slc_layer_run_scratch(slc_layer_run *run, uint64_t bytes);
/* The parameter's value, its gradient and the gradient's type. The pointers are NULL if the layer has no such
 * parameter, and while lifetimes are recorded. *fresh: the gradient is to be stored, not added to. Errors (a call in a
 * wrong order) show as failures of the runtime. */
const void *slc_layer_run_value(slc_layer_run *run, slc_param_place place);
void *slc_layer_run_gradient(slc_layer_run *run, slc_param_place place, bool *fresh);
sluice_dtype slc_layer_run_gradient_dtype(const slc_layer_run *run, slc_param_place place);
/* Returns this micro-batch's dropout at a place of the layer whose tensor has `per_sequence` elements for each
 * sequence. */
slc_dropout slc_layer_run_dropout(const slc_layer_run *run, uint32_t place, uint64_t per_sequence);
/* Returns the factor of the branches of a block in this run. */
float slc_layer_run_factor(const slc_layer_run *run);
bool slc_layer_run_drops(const slc_layer_run *run);
/* Returns this micro-batch's stochastic depth of a branch, with its draws at a place of the block. */
slc_drop_path slc_layer_run_path(const slc_layer_run *run, uint32_t place);

/* Tells the runtime how many of an activation's bytes, which are of all the model's rows, the rows of each shape take.
 */
sluice_status slc_layer_shape_rows(const sluice_model *m, sluice_activation *activation, uint64_t bytes);
