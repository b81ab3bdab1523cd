/* LAMB on the GPU. */
#ifndef SLC_KERNEL_LAMB_CUDA_H
#define SLC_KERNEL_LAMB_CUDA_H

#include "lib/kernels/lamb/lamb_cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As slc_lamb_measure and both forms of slc_lamb_apply; what the words say holds, unless they are NULL. */
sluice_status slc_lamb_measure_cuda(sluice_stream *stream, const slc_lamb_args *args, const sluice_step_words *words);
sluice_status slc_lamb_apply_cuda(sluice_stream *stream, const slc_lamb_args *args, const sluice_step_words *words);

#ifdef __cplusplus
}
#endif
#endif
