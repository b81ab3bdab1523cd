/* Additions, dropout and column sums on the GPU. */
#ifndef SLC_KERNEL_RESIDUAL_CUDA_H
#define SLC_KERNEL_RESIDUAL_CUDA_H

#include "lib/kernels/residual/residual.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the functions of residual.h, with arguments that were checked. */
sluice_status slc_residual_forward_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t rows, uint64_t channels,
                                        const void *x, const void *bias, const slc_dropout *dropout, const void *scale,
                                        const void *residual, void *out);
sluice_status slc_residual_backward_cuda(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient,
                                         uint64_t rows, uint64_t channels, const void *dout, const void *x,
                                         const void *bias, const slc_dropout *dropout, const void *scale, void *dx,
                                         void *dscale, bool fresh, float *workspace);
sluice_status slc_bias_backward_cuda(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t rows,
                                     uint64_t columns, const void *dy, uint64_t stride, void *dbias, bool fresh,
                                     float *workspace);
/* Bytes of workspace for either of the two. */
uint64_t slc_column_sums_cuda_bytes(uint64_t rows, uint64_t columns);

#ifdef __cplusplus
}
#endif
#endif
