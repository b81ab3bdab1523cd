/* On the host the words are made by the kernels for norms and for finite elements, which have ended when they return.
 */
#include "lib/kernels/step_words/step_words.h"

#include "lib/device/cuda.h"
#include "lib/kernels/host.h"
#include "lib/kernels/step_words/conclusions.h"
#include "lib/kernels/step_words/step_words_cuda.h"

sluice_status slc_step_words_begin(sluice_stream *stream, slc_step_words *words, uint32_t norm_count,
                                   int64_t (*norm_bins)[SLC_NORM_BINS])
{
    if (SLC_ON_CUDA(stream)) return slc_step_words_begin_cuda(stream, words, norm_count, norm_bins);
    sluice_status status = slc_host_check(stream, "step_words_begin");
    if (status) return status;
    *words = (slc_step_words){.told.gradient_factor = 1, .first_bad = UINT32_MAX};
    if (norm_count) memset(norm_bins, 0, norm_count * sizeof *norm_bins);
    return SLUICE_OK;
}

sluice_status slc_step_words_inspect(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x,
                                     bool norm, uint32_t parameter, slc_step_words *words)
{
    if (SLC_ON_CUDA(stream)) return slc_step_words_inspect_cuda(stream, dtype, count, x, norm, parameter, words);
    const int64_t *bad = &words->bins[SLC_NORM_BINS - 1], before = *bad;
    bool finite = true;
    sluice_status status =
        norm ? slc_norm_add(stream, dtype, count, x, words->bins) : slc_all_finite(stream, dtype, count, x, &finite);
    if (status || (finite && *bad == before)) return status;
    words->non_finite++;
    if (parameter < words->first_bad) words->first_bad = parameter;
    return SLUICE_OK;
}

sluice_status slc_step_words_agree(sluice_stream *stream, slc_step_words *words, double clip, bool skip_non_finite,
                                   uint32_t norm_count, uint32_t norms_each, uint32_t maxima_each,
                                   const int64_t (*norm_bins)[SLC_NORM_BINS], double *norms)
{
    if (SLC_ON_CUDA(stream))
        return slc_step_words_agree_cuda(stream, words, clip, skip_non_finite, norm_count, norms_each, maxima_each,
                                         norm_bins, norms);
    sluice_status status = slc_host_check(stream, "step_words_agree");
    if (status) return status;
    step_words_conclude(words, clip, skip_non_finite);
    for (uint32_t i = 0; i < norm_count; i++) norms[i] = step_words_number(i, norms_each, maxima_each, norm_bins[i]);
    return SLUICE_OK;
}
