/* Pooling on the GPU. */
#ifndef SLC_KERNEL_POOL_CUDA_H
#define SLC_KERNEL_POOL_CUDA_H

#include "lib/kernels/pool/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the functions of pool.h. */
sluice_status slc_pool_forward_cuda(sluice_stream *stream, sluice_dtype dtype, slc_pool_kind kind, uint64_t batch,
                                    uint64_t tokens, uint64_t channels, const void *x, void *y);
sluice_status slc_pool_backward_cuda(sluice_stream *stream, sluice_dtype dtype, slc_pool_kind kind, uint64_t batch,
                                     uint64_t tokens, uint64_t channels, const void *dy, void *dx);

#ifdef __cplusplus
}
#endif
#endif
