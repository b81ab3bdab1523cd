/* The progress of a GPU's stream. */
#ifndef SLC_KERNEL_PROGRESS_CUDA_H
#define SLC_KERNEL_PROGRESS_CUDA_H

#include "lib/kernels/progress/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As slc_progress. */
sluice_status slc_progress_cuda(sluice_stream *stream, uint64_t *word, uint64_t number);

#ifdef __cplusplus
}
#endif
#endif
