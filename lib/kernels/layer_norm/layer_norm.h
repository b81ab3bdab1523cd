/* Layer normalisation over the last dimension, Ba et al., arXiv 1607.06450: y = (x - mean) * rstd * gamma + beta,
 * rstd = 1/sqrt(var + epsilon), biased variance; fused with the residual addition that precedes it.
 * rows x channels. */
#ifndef SLC_KERNEL_LAYER_NORM_H
#define SLC_KERNEL_LAYER_NORM_H

#include "lib/kernels/kernel.h"

/* x: input. If `residual` is not NULL: sum = x + residual is what is normalised, and is stored to `sum` (may be x or
 * residual itself). With residual NULL, `sum` is not used. mean, rstd: one a row, kept for backward. */
sluice_status slc_layer_norm_forward(slc_stream *stream, uint64_t rows, uint64_t channels, const float *x,
                                     const float *residual, float *sum, const float *gamma, const float *beta,
                                     float epsilon, float *y, float *mean, float *rstd);

/* x: what was normalised. dx_out = d(loss)/dx (+ dx_add if not NULL: the gradient that arrives along the residual path;
 * may be dx_out itself). dgamma, dbeta: added to; with fresh != 0 stored.
 * workspace: slc_layer_norm_backward_workspace_bytes. */
uint64_t slc_layer_norm_backward_workspace_bytes(const slc_stream *stream, uint64_t rows, uint64_t channels);
sluice_status slc_layer_norm_backward(slc_stream *stream, uint64_t rows, uint64_t channels, const float *dy,
                                      const float *x, const float *gamma, const float *mean, const float *rstd,
                                      const float *dx_add, float *dx_out, float *dgamma, float *dbeta, int fresh,
                                      void *workspace);

#endif
