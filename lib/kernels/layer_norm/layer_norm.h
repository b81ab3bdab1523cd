/* Layer normalisation over the last dimension, Ba et al., arXiv 1607.06450: y = (x - mean) * rstd * gamma + beta, rstd
 * = 1/sqrt(var + epsilon), biased variance; fused with the residual addition before it. Arrays are rows x channels. */
#ifndef SLC_KERNEL_LAYER_NORM_H
#define SLC_KERNEL_LAYER_NORM_H

#include "lib/kernels/kernel.h"

/* x: input. If `residual` is not NULL, sum = x + residual is stored in `sum` (which may be x or residual itself), and y
 * is the normalised `sum` as stored: normalising `sum` again gives the same bits. With residual NULL, `sum` is unused.
 * mean, rstd: one fp32 for each row, kept for backward. y may be x or residual, but not sum. */
sluice_status slc_layer_norm_forward(slc_stream *stream, sluice_dtype dtype, uint64_t rows, uint64_t channels,
                                     const void *x, const void *residual, void *sum, const void *gamma,
                                     const void *beta, float epsilon, void *y, float *mean, float *rstd);

/* x: the array that forward normalised. dx_out = d(loss)/dx, plus dx_add if that is not NULL: the gradient that arrives
 * along the residual path (it may be dx_out itself); dx_out may be dy. dgamma, dbeta: added to, or stored if fresh !=
 * 0. workspace: slc_layer_norm_backward_workspace_bytes. */
uint64_t slc_layer_norm_backward_workspace_bytes(const slc_stream *stream, uint64_t rows, uint64_t channels);
sluice_status slc_layer_norm_backward(slc_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t rows,
                                      uint64_t channels, const void *dy, const void *x, const void *gamma,
                                      const float *mean, const float *rstd, const void *dx_add, void *dx_out,
                                      void *dgamma, void *dbeta, int fresh, void *workspace);

#endif
