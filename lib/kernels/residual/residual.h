/* Small elementwise and column operations around GEMMs. */
#ifndef SLC_KERNEL_RESIDUAL_H
#define SLC_KERNEL_RESIDUAL_H

#include "lib/kernels/kernel.h"

sluice_status slc_add(slc_stream *stream, uint64_t count, const float *a, const float *b,
                      float *out); /* out may be a, b */

/* dbias[column] (+)= sum over rows of dy; stored when fresh != 0. Fixed order for a fixed thread count. */
uint64_t slc_bias_backward_workspace_bytes(const slc_stream *stream, uint64_t rows, uint64_t columns);
sluice_status slc_bias_backward(slc_stream *stream, uint64_t rows, uint64_t columns, const float *dy, float *dbias,
                                int fresh, void *workspace);

#endif
