/* Norm bins and the search for non-finite elements on the GPU. */
#ifndef SLC_KERNEL_NORM_CUDA_H
#define SLC_KERNEL_NORM_CUDA_H

#include "lib/kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As slc_norm_add and slc_all_finite; the GPU writes bins and finite. */
sluice_status slc_norm_add_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x,
                                int64_t *bins);
sluice_status slc_all_finite_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x,
                                  bool *finite);

#ifdef __cplusplus
}
#endif
#endif
