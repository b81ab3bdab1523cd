/* Reductions on the GPU. */
#ifndef SLC_KERNEL_REDUCE_CUDA_H
#define SLC_KERNEL_REDUCE_CUDA_H

#include "lib/kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the functions of reduce.h. Errors: UNSUPPORTED (more than SLC_REDUCE_CUDA_MOST sources or destinations). */
enum { SLC_REDUCE_CUDA_MOST = 64 };
sluice_status slc_reduce_cuda(sluice_stream *stream, uint64_t count, sluice_dtype from, const void *const *sources,
                              uint32_t source_count, float scale, bool accumulate, sluice_dtype to,
                              void *const *destinations, uint32_t destination_count);
sluice_status slc_reduce_int64_cuda(sluice_stream *stream, uint64_t count, const int64_t *const *sources,
                                    uint32_t source_count, int64_t *const *destinations, uint32_t destination_count);
sluice_status slc_reduce_float64_cuda(sluice_stream *stream, uint64_t count, const double *const *sources,
                                      uint32_t source_count, double *const *destinations, uint32_t destination_count);

#ifdef __cplusplus
}
#endif
#endif
