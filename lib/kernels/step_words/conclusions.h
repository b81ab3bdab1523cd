/* The conclusions of step_words.h, and what ranks tell each other for them, for the host and in a kernel of the GPU. */
#pragma once

#include "lib/kernels/norm/norm_result.h"
#include "lib/kernels/step_words/step_words.h"

static inline SLC_HOST_AND_GPU double step_words_factor(double clip, double norm)
{
    const double factor = clip / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

static inline SLC_HOST_AND_GPU void step_words_conclude(slc_step_words *words, double clip, double scale,
                                                        double own_scale, bool skip_non_finite)
{
    const bool clips = clip > 0 && !words->non_finite;
    if (scale == 0) scale = 1;
    words->told.gradient_factor =
        scale * (clips ? step_words_factor(clip, norm_result(words->bins) * (scale < 0 ? -scale : scale)) : 1);
    words->told.skip = skip_non_finite && words->non_finite;
    words->own.gradient_factor =
        own_scale * (clips ? step_words_factor(clip, norm_result(words->own_bins) * own_scale) : 1);
    words->own.skip = words->told.skip;
}

/* Does what slc_step_words_tell does. */
static inline SLC_HOST_AND_GPU void step_words_tell(slc_step_words *words, uint32_t count, uint32_t *numbers)
{
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] < words->first_bad) words->first_bad = numbers[i];
        numbers[i] = UINT32_MAX;
    }
    if (words->first_bad != UINT32_MAX && !words->non_finite) words->non_finite = 1;
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

/* Returns the first word of number i, counted from `head` on; for i = norm_count, the end of all words. */
static inline SLC_HOST_AND_GPU uint64_t step_words_place(const slc_step_words_sums_args *a, uint32_t i)
{
    const uint32_t each = a->norms_each + a->maxima_each;
    if (!each) return 0;
    const uint64_t norms = (uint64_t)a->norms_each * SLC_NORM_WORDS, j = i % each;
    const uint64_t before = i / each * (norms + (uint64_t)a->maxima_each * a->ranks);
    return before + (j < a->norms_each ? j * SLC_NORM_WORDS : norms + (j - a->norms_each) * a->ranks);
}

static inline SLC_HOST_AND_GPU bool step_words_is_norm(const slc_step_words_sums_args *a, uint32_t i)
{
    return i % (a->norms_each + a->maxima_each) < a->norms_each;
}

/* Packing has so many parts, which do not depend on each other: the words of the head, the numbers, the zeros at the
 * end. Unpacking has those of the head and the numbers. */
static inline SLC_HOST_AND_GPU uint64_t step_words_pack_parts(const slc_step_words_sums_args *a)
{
    return a->count - step_words_place(a, a->norm_count) + a->norm_count;
}

static inline SLC_HOST_AND_GPU void step_words_pack_number(const slc_step_words_sums_args *a, uint32_t i)
{
    int64_t *to = a->sums + a->head + step_words_place(a, i);
    if (step_words_is_norm(a, i))
        norm_pack(a->norm_bins[i], to);
    else
        for (uint32_t r = 0; r < a->ranks; r++) to[r] = r == a->rank ? a->norm_bins[i][0] : 0;
}

static inline SLC_HOST_AND_GPU void step_words_pack_part(const slc_step_words_sums_args *a, uint64_t i)
{
    if (i < a->head) {
        a->sums[i] = i < SLC_NORM_BINS ? a->words->bins[i] : i == SLC_NORM_BINS ? (int64_t)a->words->non_finite : 0;
    } else if (i - a->head < a->norm_count) {
        step_words_pack_number(a, (uint32_t)(i - a->head));
    } else {
        a->sums[i - a->norm_count + step_words_place(a, a->norm_count)] = 0;
    }
}

/* Numbers that are not negative are in the order of their bits. */
static inline SLC_HOST_AND_GPU void step_words_unpack_number(const slc_step_words_sums_args *a, uint32_t i)
{
    const int64_t *from = a->sums + a->head + step_words_place(a, i);
    if (step_words_is_norm(a, i)) {
        norm_unpack(from, a->norm_bins[i]);
        return;
    }
    int64_t most = 0;
    for (uint32_t r = 0; r < a->ranks; r++) most = from[r] > most ? from[r] : most;
    a->norm_bins[i][0] = most;
}

static inline SLC_HOST_AND_GPU void step_words_unpack_part(const slc_step_words_sums_args *a, uint64_t i)
{
    if (i >= a->head)
        step_words_unpack_number(a, (uint32_t)(i - a->head));
    else if (i < SLC_NORM_BINS)
        a->words->bins[i] = a->sums[i];
    else if (i == SLC_NORM_BINS)
        a->words->non_finite = (uint64_t)a->sums[i];
}
