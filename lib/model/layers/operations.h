/* The operations that layers are made of. Each begins the slot's next operation and touches its tensors, and computes
 * unless lifetimes are being recorded. Tensors are [rows][columns] in the layer's type; weights have the layout of the
 * model's family. Errors: ORDER (the runtime does not give a parameter or gradient now), those of the kernels. */
#pragma once

#include "lib/kernels/attention/attention.h"
#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/gemm/gemm.h"
#include "lib/model/state.h"

/* A part of a tensor: it begins at element `first` and has `stride` elements from row to row (0: dense). */
typedef struct {
    uint32_t tensor;
    uint64_t first, stride;
} slc_view;
#define SLC_ALL(t) ((slc_view){.tensor = (t)})
#define SLC_FROM(t, f) ((slc_view){.tensor = (t), .first = (f)})

typedef struct {
    slc_param_place weight; /* the bias is the next place; the layer may have none */
    uint64_t rows, inputs, outputs;
    bool fp32_out; /* the y of forward (and nothing else) is fp32 whatever the layer's type */
    bool by_rows;  /* the weight is [outputs][inputs] even in GPT-2, as in its token table */
    slc_param_place bias;
    bool in_branch; /* it ends a block's branch alone, so the branch's factor is its own */
} slc_dense;
slc_dense slc_dense_of(const slc_layer_run *run, slc_param_place weight, uint64_t rows, uint64_t inputs,
                       uint64_t outputs);

/* y = x W + b (+ residual, whose tensor may be SLC_NO_TENSOR). If the product has a factor, x W + b is multiplied by
 * it, and so are the gradients that are computed from dy. */
sluice_status slc_apply_dense(slc_layer_run *run, const slc_dense *dense, slc_view x, slc_view y, slc_view residual);
/* Adds to the gradients of weight and bias. */
sluice_status slc_apply_dense_params(slc_layer_run *run, const slc_dense *dense, slc_view x, slc_view dy);
/* dx (+)= dy W^T (+ residual) */
sluice_status slc_apply_dense_input(slc_layer_run *run, const slc_dense *dense, slc_view dy, slc_view dx, bool add,
                                    slc_view residual);

/* The norm's bias is the place after its weight. stats: mean and reciprocal deviation, 2 x rows. */
sluice_status slc_apply_norm(slc_layer_run *run, slc_param_place weight, uint64_t rows, slc_view x, slc_view y,
                             uint32_t stats);
/* dx = the gradient through the norm (+ add, whose tensor may be SLC_NO_TENSOR and may be dx). Adds to the norm's
 * gradients. */
sluice_status slc_apply_norm_backward(slc_layer_run *run, slc_param_place weight, uint64_t rows, slc_view dy,
                                      slc_view x, uint32_t stats, slc_view add, slc_view dx);

/* Notes how much the block has changed its input, if training is observed; nothing is computed with it. */
sluice_status slc_apply_observe(slc_layer_run *run);

sluice_status slc_apply_gelu(slc_layer_run *run, uint64_t count, uint32_t x, uint32_t y);
sluice_status slc_apply_gelu_backward(slc_layer_run *run, uint64_t count, uint32_t x, uint32_t dy, uint32_t dx);

/* Numbers of a branch's two kinds of draws among all of its layer. */
typedef struct {
    uint32_t dropout, path;
} slc_branch_draws;

/* out = residual + factor * path * scale * dropout(x), with the factor of the block's branches and stochastic depth as
 * path. scale may be SLC_NO_PARAM, and residual may be SLC_NO_TENSOR. */
sluice_status slc_apply_branch(slc_layer_run *run, slc_branch_draws place, slc_param_place scale, uint32_t x,
                               uint32_t residual, uint32_t out);
sluice_status slc_apply_branch_backward(slc_layer_run *run, slc_branch_draws place, slc_param_place scale,
                                        uint32_t dout, uint32_t x, uint32_t dx);
/* Works in place, on a tensor with `per_sequence` elements for each sequence. Does nothing if there is no dropout. */
sluice_status slc_apply_dropout(slc_layer_run *run, uint32_t place, uint32_t x, uint64_t per_sequence);

/* Computes the losses of `rows` rows of fp32 logits, for the targets from number `first` on, and copies them to the
 * micro-batch's losses. Stores the logits' gradient, times `scale`, in their place. scale 0: computes the losses only,
 * without smoothing, as evaluations want them. */
sluice_status slc_apply_losses(slc_layer_run *run, uint32_t logits, uint32_t losses, uint64_t first, uint64_t rows,
                               uint64_t classes, float scale);

/* pick: row i of `y` becomes row rows[first + i] of x, where rows is the micro-batch's list of rows with targets.
 * pick_backward: row i of `dy` is added to that row of dx, which slc_apply_zero has cleared. */
sluice_status slc_apply_pick(slc_layer_run *run, uint64_t first, uint64_t rows, uint32_t x, uint32_t y);
sluice_status slc_apply_zero(slc_layer_run *run, uint64_t rows, uint32_t dx);
sluice_status slc_apply_pick_backward(slc_layer_run *run, uint64_t first, uint64_t rows, uint32_t dy, uint32_t dx);

/* Convert SLC_SOURCE to SLC_INPUT and SLC_GRADIENT to SLC_GRADIENT_BELOW. They do nothing if the layers' types are
 * equal. */
sluice_status slc_apply_take_input(slc_layer_run *run);
sluice_status slc_apply_give_gradient(slc_layer_run *run);
