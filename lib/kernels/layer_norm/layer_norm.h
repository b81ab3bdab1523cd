/* Layer normalisation over the last dimension, Ba et al., arXiv 1607.06450: y = (x - mean) * rstd * gamma + beta, rstd
 * = 1/sqrt(var + epsilon), biased variance; fused with the residual addition before it. Arrays are rows x channels,
 * gamma, beta and their gradients [channels], mean and rstd [rows]. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

typedef struct {
    sluice_dtype dtype;
    uint64_t rows, channels;
    double epsilon;
    const void *x, *gamma, *beta;
    /* If `residual` is not NULL, sum = x + residual is stored in `sum` (which may be x or residual itself), and y is
     * the normalised `sum` as stored: normalising `sum` again gives the same bits. With residual NULL, `sum` is unused.
     */
    const void *residual;
    void *sum;
    void *y;           /* may be x or residual, but not sum */
    void *mean, *rstd; /* fp32, kept for backward */
} slc_layer_norm_forward_args;

sluice_status slc_layer_norm_forward(sluice_stream *stream, const slc_layer_norm_forward_args *args);

typedef struct {
    sluice_dtype dtype, gradient;
    uint64_t rows, channels;
    const void *dy, *x, *gamma; /* x: the array that forward normalised */
    const void *mean, *rstd;    /* fp32, from forward */
    const void *dx_add;         /* is added to dx: the gradient that arrives along the residual path. NULL: none */
    void *dx;                   /* d(loss)/dx; may be dy or dx_add */
    void *dgamma, *dbeta;       /* added to, or stored if `fresh` */
    bool fresh;
    void *workspace; /* slc_layer_norm_backward_workspace_bytes */
} slc_layer_norm_backward_args;

sluice_status slc_layer_norm_backward(sluice_stream *stream, const slc_layer_norm_backward_args *args);
uint64_t slc_layer_norm_backward_workspace_bytes(const sluice_stream *stream, uint64_t rows, uint64_t channels);

/* ---- Forms ---- */

void slc_layer_norm_forward_ref(const slc_layer_norm_forward_args *args);
void slc_layer_norm_backward_ref(const slc_layer_norm_backward_args *args);

SLC_ISA_DECLARE(slc_layer_norm_forward_range);  /* over ranges of rows */
SLC_ISA_DECLARE(slc_layer_norm_backward_range); /* over ranges of rows; a part's [2][channels] sums of dy * xhat and of
                                                   dy lie in the workspace, one part after the other */
SLC_DEVICE_DECLARE(slc_layer_norm_forward);
SLC_DEVICE_DECLARE(slc_layer_norm_backward);
SLC_DEVICE_DECLARE(slc_layer_norm_backward_workspace_bytes);
