/* Embedding on the GPU. */
#ifndef SLC_KERNEL_EMBEDDING_CUDA_H
#define SLC_KERNEL_EMBEDDING_CUDA_H

#include "lib/kernels/embedding/embedding.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the functions of embedding.h, with at least one place and channel. Tokens, types and orders are read by the GPU.
 * Backward needs no workspace. */
sluice_status slc_embedding_forward_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t batch, uint64_t length,
                                         uint64_t channels, const int32_t *tokens, const int32_t *types,
                                         const slc_embedding_tables *tables, void *out);
sluice_status slc_embedding_backward_cuda(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient,
                                          uint64_t batch, uint64_t length, uint64_t channels, const int32_t *tokens,
                                          const int32_t *types, const void *dout,
                                          const slc_embedding_gradients *gradients);

#ifdef __cplusplus
}
#endif
#endif
