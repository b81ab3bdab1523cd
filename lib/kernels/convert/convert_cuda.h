/* Conversion on the GPU. */
#ifndef SLC_KERNEL_CONVERT_CUDA_H
#define SLC_KERNEL_CONVERT_CUDA_H

#include "lib/kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As slc_convert, between two different types. */
sluice_status slc_convert_cuda(sluice_stream *stream, sluice_dtype from, const void *x, void *y, uint64_t count);

#ifdef __cplusplus
}
#endif
#endif
