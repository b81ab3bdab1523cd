/* Layer norm on the GPU. */
#ifndef SLC_KERNEL_LAYER_NORM_CUDA_H
#define SLC_KERNEL_LAYER_NORM_CUDA_H

#include "lib/kernels/layer_norm/layer_norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the functions of layer_norm.h. */
sluice_status slc_layer_norm_forward_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t rows, uint64_t channels,
                                          const void *x, const void *residual, void *sum, const void *gamma,
                                          const void *beta, float epsilon, void *y, float *mean, float *rstd);
sluice_status slc_layer_norm_backward_cuda(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient,
                                           uint64_t rows, uint64_t channels, const void *dy, const void *x,
                                           const void *gamma, const float *mean, const float *rstd, const void *dx_add,
                                           void *dx_out, void *dgamma, void *dbeta, int fresh, float *workspace);
uint64_t slc_layer_norm_backward_cuda_bytes(uint64_t rows, uint64_t channels);

#ifdef __cplusplus
}
#endif
#endif
