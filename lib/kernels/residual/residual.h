/* The steps between a GEMM and the residual stream: additions, dropout, a scale for each channel, and the gradients of
 * arrays that are broadcast over rows. */
#ifndef SLC_KERNEL_RESIDUAL_H
#define SLC_KERNEL_RESIDUAL_H

#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/kernel.h"

/* out[i] = a[i] + b[i]; out may be a or b. */
sluice_status slc_add(slc_stream *stream, sluice_dtype dtype, uint64_t count, const void *a, const void *b, void *out);

/* out = residual + scale * dropout(x + bias), rows x channels. bias and scale (BEiT's lambda) have one element for each
 * channel; bias, dropout, scale and residual may be NULL. out may be x or residual. Errors: ARGUMENT (dropout.h). */
sluice_status slc_residual_forward(slc_stream *stream, sluice_dtype dtype, uint64_t rows, uint64_t channels,
                                   const void *x, const void *bias, const slc_dropout *dropout, const void *scale,
                                   const void *residual, void *out);

/* Dropout alone: y = x times the element's factor, in forward and in backward. y may be x. Errors: ARGUMENT
 * (probability). */
sluice_status slc_dropout_apply(slc_stream *stream, const slc_dropout *dropout, sluice_dtype dtype, uint64_t count,
                                const void *x, void *y);

/* Backward of slc_residual_forward: dx = dropout(scale * dout); dscale += sum over rows of dout * dropout(x + bias), or
 * is stored if fresh != 0. dbias is slc_bias_backward of dx, the residual's gradient is dout. With scale NULL, x, bias,
 * dscale and workspace are unused. dx may be dout. workspace: slc_residual_backward_workspace_bytes. */
uint64_t slc_residual_backward_workspace_bytes(const slc_stream *stream, uint64_t rows, uint64_t channels);
sluice_status slc_residual_backward(slc_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t rows,
                                    uint64_t channels, const void *dout, const void *x, const void *bias,
                                    const slc_dropout *dropout, const void *scale, void *dx, void *dscale, int fresh,
                                    void *workspace);

/* dbias[column] += sum over rows of dy, or is stored if fresh != 0. `stride`: elements from one row of dy to the next;
 * 0: columns. The result is the same for any number of threads. workspace: slc_bias_backward_workspace_bytes. Errors:
 * ARGUMENT (stride). */
uint64_t slc_bias_backward_workspace_bytes(const slc_stream *stream, uint64_t rows, uint64_t columns);
sluice_status slc_bias_backward(slc_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t rows,
                                uint64_t columns, const void *dy, uint64_t stride, void *dbias, int fresh,
                                void *workspace);

#endif
