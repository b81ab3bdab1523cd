/* The words of a step on the GPU. */
#ifndef SLC_KERNEL_STEP_WORDS_CUDA_H
#define SLC_KERNEL_STEP_WORDS_CUDA_H

#include "lib/kernels/step_words/step_words.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the functions of step_words.h. */
sluice_status slc_step_words_begin_cuda(sluice_stream *stream, slc_step_words *words, uint32_t norm_count,
                                        int64_t (*norm_bins)[SLC_NORM_BINS]);
sluice_status slc_step_words_inspect_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x,
                                          bool norm, uint32_t parameter, slc_step_words *words);
sluice_status slc_step_words_agree_cuda(sluice_stream *stream, slc_step_words *words, double clip, bool skip_non_finite,
                                        uint32_t norm_count, uint32_t norms_each, uint32_t maxima_each,
                                        const int64_t (*norm_bins)[SLC_NORM_BINS], double *norms);

#ifdef __cplusplus
}
#endif
#endif
