/* On the host the words are made by the kernels for norms and for finite elements, which have ended when they return.
 */
#include "lib/kernels/step_words/step_words.h"

#include "lib/kernels/dispatch.h"
#include "lib/kernels/step_words/conclusions.h"

static void step_words_begin_host(sluice_stream *stream, slc_step_words *words, uint32_t norm_count,
                                  int64_t (*norm_bins)[SLC_NORM_BINS])
{
    (void)stream;
    *words = (slc_step_words){.told.gradient_factor = 1, .first_bad = UINT32_MAX, .own.gradient_factor = 1};
    if (norm_count) memset(norm_bins, 0, norm_count * sizeof *norm_bins);
}

sluice_status slc_step_words_begin(sluice_stream *stream, slc_step_words *words, uint32_t norm_count,
                                   int64_t (*norm_bins)[SLC_NORM_BINS])
{
    return SLC_DEVICE_RUN(stream, step_words_begin, words, norm_count, norm_bins);
}

static sluice_status inspect_range(sluice_stream *stream, const slc_step_words_inspect_args *args,
                                   const slc_step_words_range *range)
{
    slc_step_words *words = args->words;
    int64_t *bins = args->norm == SLC_INSPECT_OWN_NORM ? words->own_bins : words->bins;
    const int64_t *bad = &bins[SLC_NORM_BINS - 1], before = *bad;
    bool finite = true;
    sluice_status status = args->norm ? slc_norm_add(stream, args->dtype, range->count, range->x, bins)
                                      : slc_all_finite(stream, args->dtype, range->count, range->x, &finite);
    if (status || (finite && *bad == before)) return status;
    words->non_finite++;
    if (range->parameter < words->first_bad) words->first_bad = range->parameter;
    return SLUICE_OK;
}

static sluice_status step_words_inspect_host(sluice_stream *stream, const slc_step_words_inspect_args *args)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < args->range_count && !status; i++) status = inspect_range(stream, args, &args->ranges[i]);
    return status;
}

sluice_status slc_step_words_inspect(sluice_stream *stream, const slc_step_words_inspect_args *args)
{
    return SLC_DEVICE_PICK(stream, step_words_inspect)(stream, args);
}

static void step_words_tell_host(sluice_stream *stream, slc_step_words *words, uint32_t count, uint32_t *numbers)
{
    (void)stream;
    step_words_tell(words, count, numbers);
}

sluice_status slc_step_words_tell(sluice_stream *stream, slc_step_words *words, uint32_t count, uint32_t *numbers)
{
    return SLC_DEVICE_RUN(stream, step_words_tell, words, count, numbers);
}

static void step_words_agree_host(sluice_stream *stream, const slc_step_words_agree_args *args)
{
    (void)stream;
    step_words_conclude(args->words, args->clip, args->scale, args->own_scale, args->skip_non_finite);
    for (uint32_t i = 0; i < args->norm_count; i++)
        args->norms[i] = step_words_number(i, args->norms_each, args->maxima_each, args->norm_bins[i]);
}

sluice_status slc_step_words_agree(sluice_stream *stream, const slc_step_words_agree_args *args)
{
    return SLC_DEVICE_RUN(stream, step_words_agree, args);
}

uint64_t slc_step_words_sums(uint32_t norm_count, uint32_t norms_each, uint32_t maxima_each, uint32_t ranks)
{
    const slc_step_words_sums_args args = {.norms_each = norms_each, .maxima_each = maxima_each, .ranks = ranks};
    return step_words_place(&args, norm_count);
}

static void step_words_pack_host(sluice_stream *stream, const slc_step_words_sums_args *args)
{
    (void)stream;
    for (uint64_t i = 0; i < step_words_pack_parts(args); i++) step_words_pack_part(args, i);
}

sluice_status slc_step_words_pack(sluice_stream *stream, const slc_step_words_sums_args *args)
{
    return SLC_DEVICE_RUN(stream, step_words_pack, args);
}

static void step_words_unpack_host(sluice_stream *stream, const slc_step_words_sums_args *args)
{
    (void)stream;
    for (uint64_t i = 0; i < args->head + args->norm_count; i++) step_words_unpack_part(args, i);
}

sluice_status slc_step_words_unpack(sluice_stream *stream, const slc_step_words_sums_args *args)
{
    return SLC_DEVICE_RUN(stream, step_words_unpack, args);
}
