/* AdamW on the GPU. */
#ifndef SLC_KERNEL_ADAMW_CUDA_H
#define SLC_KERNEL_ADAMW_CUDA_H

#include "lib/kernels/adamw/adamw_cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Updates the ranges with these factors, and what the words say, unless they are NULL. */
sluice_status slc_adamw_cuda(sluice_stream *stream, const slc_adamw_factors *factors, const sluice_step_words *words,
                             uint32_t range_count, const slc_adamw_range *ranges);

#ifdef __cplusplus
}
#endif
#endif
