/* tests/cuda_emulated/launches_test.c covers this file. */
#include "lib/kernels/step_words/looking.h"

#include "lib/base/element.h"

void slc_looking_begin(slc_looking *l, sluice_stream *stream, slc_step_words *words, sluice_dtype dtype,
                       slc_inspection inspection)
{
    l->stream = stream;
    l->args = (slc_step_words_inspect_args){.words = words, .dtype = dtype, .norm = inspection, .ranges = l->at};
}

sluice_status slc_looking_add(slc_looking *l, const slc_step_words_range *range)
{
    slc_step_words_range *last = l->args.range_count ? &l->at[l->args.range_count - 1] : NULL;
    if (last && last->parameter == range->parameter && range->x == slc_element(last->x, l->args.dtype, last->count)) {
        last->count += range->count;
        return SLUICE_OK;
    }
    sluice_status status = l->args.range_count == SLC_STEP_WORDS_RANGES ? slc_looking_end(l) : SLUICE_OK;
    l->at[l->args.range_count++] = *range;
    return status;
}

sluice_status slc_looking_end(slc_looking *l)
{
    sluice_status status = l->args.range_count ? slc_step_words_inspect(l->stream, &l->args) : SLUICE_OK;
    l->args.range_count = 0;
    return status;
}
