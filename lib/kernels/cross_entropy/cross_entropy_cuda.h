/* Cross-entropy on the GPU. */
#ifndef SLC_KERNEL_CROSS_ENTROPY_CUDA_H
#define SLC_KERNEL_CROSS_ENTROPY_CUDA_H

#include "lib/kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As slc_cross_entropy. */
sluice_status slc_cross_entropy_cuda(sluice_stream *stream, uint64_t rows, uint64_t classes, uint64_t stride,
                                     float *logits, sluice_dtype gradient, const int32_t *targets, float smoothing,
                                     float gradient_scale, float *losses);

#ifdef __cplusplus
}
#endif
#endif
