/* Attention on the GPU, for heads of at most SLC_ATTENTION_CUDA_DEPTH. */
#ifndef SLC_KERNEL_ATTENTION_CUDA_H
#define SLC_KERNEL_ATTENTION_CUDA_H

#include "lib/kernels/attention/attention_cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SLC_ATTENTION_CUDA_DEPTH = 128 };

/* Forward needs no workspace. */
sluice_status slc_attention_forward_cuda(sluice_stream *stream, const slc_attention_forward_args *args);
uint64_t slc_attention_backward_cuda_bytes(const slc_attention_shape *shape);
sluice_status slc_attention_backward_cuda(sluice_stream *stream, const slc_attention_backward_args *args,
                                          sluice_dtype gradient, void *drelative, bool fresh);

#ifdef __cplusplus
}
#endif
#endif
