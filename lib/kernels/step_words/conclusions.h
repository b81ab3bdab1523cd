/* The conclusions of step_words.h, for the host and in a kernel of the GPU. */
#pragma once

#include "lib/kernels/norm/norm_result.h"
#include "lib/kernels/step_words/step_words.h"

static inline SLC_HOST_AND_GPU void step_words_conclude(slc_step_words *words, double clip, bool skip_non_finite)
{
    double factor = 1;
    if (clip > 0 && !words->non_finite) factor = clip / (norm_result(words->bins) + 1e-6);
    words->told.gradient_factor = factor < 1 ? factor : 1;
    words->told.skip = skip_non_finite && words->non_finite;
}

/* Returns number i of those that parameters have, each norms_each norms and maxima_each maxima. */
static inline SLC_HOST_AND_GPU double step_words_number(uint32_t i, uint32_t norms_each, uint32_t maxima_each,
                                                        const int64_t *bins)
{
    if (i % (norms_each + maxima_each) < norms_each) return norm_result(bins);
    double most;
    memcpy(&most, bins, sizeof most);
    return most;
}
