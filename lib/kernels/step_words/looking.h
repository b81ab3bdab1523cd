/* Inspection on a device that runs ahead, of many ranges by one launch: ranges are gathered, and those that follow each
 * other are one. The kernels note what they find, by parameter, in the step's words. */
#pragma once

#include "lib/kernels/step_words/step_words.h"

typedef struct {
    sluice_stream *stream;
    slc_step_words_inspect_args args;
    slc_step_words_range at[SLC_STEP_WORDS_RANGES];
} slc_looking;

/* Begins with no range; all will have elements of `dtype`. */
void slc_looking_begin(slc_looking *l, sluice_stream *stream, slc_step_words *words, sluice_dtype dtype,
                       slc_inspection inspection);
/* Adds a range, which need not live on; if there is no room for more, what was gathered is inspected first. */
sluice_status slc_looking_add(slc_looking *l, const slc_step_words_range *range);
/* Inspects what was gathered. */
sluice_status slc_looking_end(slc_looking *l);
