/* GELU, tanh approximation, Hendrycks & Gimpel, arXiv 1606.08415:
 * y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). `count` elements. */
#ifndef SLC_KERNEL_GELU_H
#define SLC_KERNEL_GELU_H

#include "lib/kernels/kernel.h"

sluice_status slc_gelu_forward(slc_stream *stream, uint64_t count, const float *x, float *y); /* y may be x */
/* dx = dy * gelu'(x); dx may be dy. */
sluice_status slc_gelu_backward(slc_stream *stream, uint64_t count, const float *x, const float *dy, float *dx);

#endif
