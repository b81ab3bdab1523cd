/* GELU and tanh on the GPU. */
#ifndef SLC_KERNEL_GELU_CUDA_H
#define SLC_KERNEL_GELU_CUDA_H

#include "lib/kernels/gelu/gelu_cpu.h"
#include "lib/kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = function(x, dy) for `count` elements; out may be x or dy. */
sluice_status slc_gelu_cuda(sluice_stream *stream, slc_gelu_function function, sluice_dtype dtype, uint64_t count,
                            const void *x, const void *dy, void *out);

#ifdef __cplusplus
}
#endif
#endif
