/* A dense layer y = x W + b, W stored [inputs][outputs] (GPT-2's Conv1D), x [rows][inputs]. */
#ifndef SLC_MODEL_LINEAR_H
#define SLC_MODEL_LINEAR_H

#include "lib/kernels/kernel.h"

#include <sluice/runtime.h>

typedef struct {
    uint64_t rows, inputs, outputs;
} slc_linear_shape;

/* Scratch that serves forward and backward; prepares what they need, so that they allocate nothing. */
sluice_status slc_linear_scratch_bytes(const slc_stream *stream, const slc_linear_shape *shape, uint64_t *bytes);

/* All between the hooks of the layer that has `weight` and `bias`. */
sluice_status slc_linear_forward(slc_stream *stream, const slc_linear_shape *shape, const float *x,
                                 sluice_param *weight, sluice_param *bias, float *y, void *scratch,
                                 uint64_t scratch_bytes);
/* Adds to both gradients. */
sluice_status slc_linear_backward_params(slc_stream *stream, const slc_linear_shape *shape, const float *x,
                                         const float *dy, sluice_param *weight, sluice_param *bias, void *scratch,
                                         uint64_t scratch_bytes);
/* Stores dx, which may not be dy. */
sluice_status slc_linear_backward_input(slc_stream *stream, const slc_linear_shape *shape, const float *dy,
                                        sluice_param *weight, float *dx, void *scratch, uint64_t scratch_bytes);

#endif
