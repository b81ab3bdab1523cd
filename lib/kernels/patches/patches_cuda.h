/* Images as sequences on the GPU. */
#ifndef SLC_KERNEL_PATCHES_CUDA_H
#define SLC_KERNEL_PATCHES_CUDA_H

#include "lib/kernels/patches/patches.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the functions of patches.h, with arguments that were checked. The GPU reads `masked`. */
sluice_status slc_patches_unfold_cuda(sluice_stream *stream, sluice_dtype dtype, const slc_patch_shape *shape,
                                      const float *pixels, void *columns);
sluice_status slc_patch_embedding_forward_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t batch,
                                               uint64_t patches, uint64_t channels, const void *x, const void *cls,
                                               const void *mask_token, const uint8_t *masked, const void *position,
                                               void *out);
sluice_status slc_patch_embedding_backward_cuda(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient,
                                                uint64_t batch, uint64_t patches, uint64_t channels, const void *dout,
                                                const uint8_t *masked, void *dx, void *dcls, void *dmask_token,
                                                void *dposition, int fresh);

#ifdef __cplusplus
}
#endif
#endif
