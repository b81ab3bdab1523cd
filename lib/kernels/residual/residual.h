/* The steps between a GEMM and the residual stream: additions, dropout, a scale for each channel, and the gradients of
 * arrays that are broadcast over rows. */
#pragma once

#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

/* Stochastic depth by sequence: Huang et al., arXiv 1603.09382, as timm's DropPath draws it. A branch is left out for a
 * whole sequence, or multiplied by 1 / (1 - probability). Sequence i of the call is drawn as element i of a dropout. */
typedef struct {
    slc_dropout draw; /* its `first` is the number of the call's first sequence */
    uint64_t rows;    /* of a sequence; above 0 if the probability is */
} slc_drop_path;

/* out = residual + factor * path * scale * dropout(x + bias), rows x channels; path is that of the row's sequence. */
typedef struct {
    sluice_dtype dtype;
    uint64_t rows, channels;
    const void *x;
    const void *bias, *scale; /* [channels]; scale is BEiT's lambda. NULL: none */
    const slc_dropout *dropout;
    const void *residual;      /* NULL: none */
    void *out;                 /* may be x or residual */
    const slc_drop_path *path; /* NULL: every branch stays */
    float factor;              /* 0: 1 */
} slc_residual_forward_args;

/* Errors: ARGUMENT (dropout.h, rows of a sequence). */
sluice_status slc_residual_forward(sluice_stream *stream, const slc_residual_forward_args *args);

/* Dropout alone: y = x times the element's factor, in forward and in backward. y may be x. Errors: ARGUMENT
 * (probability). */
sluice_status slc_dropout_apply(sluice_stream *stream, const slc_dropout *dropout, sluice_dtype dtype, uint64_t count,
                                const void *x, void *y);

/* Backward of slc_residual_forward: dx = factor * path * dropout(scale * dout), and dscale is the sum over rows of
 * factor * path * dout * dropout(x + bias). dbias is slc_bias_backward of dx, the residual's gradient is dout. */
typedef struct {
    sluice_dtype dtype, gradient;
    uint64_t rows, channels;
    const void *dout;
    const void *x, *bias, *scale; /* as in forward; without scale neither x, bias, dscale nor workspace is used */
    const slc_dropout *dropout;
    void *dx;     /* may be dout */
    void *dscale; /* added to, or stored if `fresh` */
    bool fresh;
    void *workspace;           /* slc_residual_backward_workspace_bytes */
    const slc_drop_path *path; /* as in forward */
    float factor;              /* 0: 1 */
} slc_residual_backward_args;

/* Errors: ARGUMENT (dropout.h, rows of a sequence). */
sluice_status slc_residual_backward(sluice_stream *stream, const slc_residual_backward_args *args);
uint64_t slc_residual_backward_workspace_bytes(const sluice_stream *stream, uint64_t rows, uint64_t channels);

/* dbias[column] is factor times the sum over rows of dy, the same for any number of threads. */
typedef struct {
    sluice_dtype dtype, gradient;
    uint64_t rows, columns, stride; /* stride: elements from one row of dy to the next; 0: columns */
    const void *dy;
    void *dbias; /* added to, or stored if `fresh` */
    bool fresh;
    void *workspace; /* slc_bias_backward_workspace_bytes */
    float factor;    /* 0: 1 */
} slc_bias_backward_args;

/* Errors: ARGUMENT (stride). */
sluice_status slc_bias_backward(sluice_stream *stream, const slc_bias_backward_args *args);
uint64_t slc_bias_backward_workspace_bytes(const sluice_stream *stream, uint64_t rows, uint64_t columns);

/* ---- Forms ---- */

void slc_residual_forward_ref(const slc_residual_forward_args *args);
void slc_residual_backward_ref(const slc_residual_backward_args *args);
void slc_bias_backward_ref(const slc_bias_backward_args *args);

/* The fast forms get a factor that is never 0; a dropout or a path, if there is one, has a probability above 0. They
 * leave sums of columns in the workspace. */
SLC_ISA_DECLARE(slc_residual_forward_range);  /* over ranges of elements */
SLC_ISA_DECLARE(slc_residual_backward_range); /* over ranges of columns */
SLC_ISA_DECLARE(slc_bias_backward_range);     /* over ranges of columns */
SLC_DEVICE_DECLARE(slc_residual_forward);
SLC_DEVICE_DECLARE(slc_residual_backward);
SLC_DEVICE_DECLARE(slc_bias_backward);
SLC_DEVICE_DECLARE(slc_bias_backward_workspace_bytes);
