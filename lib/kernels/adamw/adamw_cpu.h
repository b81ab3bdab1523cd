/* The fast AdamW, compiled once for each instruction set, and the parts of it that LAMB uses: ranges laid end to
 * end. */
#pragma once

#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/isa.h"

typedef struct {
    float gradient_factor, beta1, beta2, rest1, rest2; /* rest: 1 - beta */
    float correction;                                  /* 1 / bias_correction1, times the learning rate for AdamW */
    float rescale;                                     /* 1 / sqrt(bias_correction2) */
    float epsilon;
    float decay; /* weight_decay, times the learning rate for AdamW */
} slc_adamw_factors;

typedef struct {
    slc_adamw_factors factors;
    const sluice_step_words *words; /* or NULL; what they say holds, and is in the factors for the host's loop */
    const slc_adamw_range *ranges;
    uint32_t range_count;
} slc_adamw_args;

SLC_ISA_DECLARE(slc_adamw_ranges); /* over ranges of elements, counted through all slc_adamw_range, padded */
SLC_C_LINKAGE sluice_status slc_adamw_cuda(sluice_stream *stream, const slc_adamw_args *args);

/* Each slc_adamw_range is padded to a multiple of it, so that threads' ranges meet at whole lanes. */
enum { SLC_ADAMW_UNIT = 16 };

slc_adamw_factors slc_adamw_factors_of(const slc_adamw_settings *settings, double learning_rate);

/* Takes over what the step's words say, if there are any. Returns false if nothing is to be done. */
static inline SLC_HOST_AND_GPU bool slc_adamw_heed_words(const sluice_step_words *words, slc_adamw_factors *factors)
{
    if (words) factors->gradient_factor = (float)words->gradient_factor;
    return !words || !words->skip;
}

/* Returns the number of elements in all ranges, padded. */
uint64_t slc_adamw_elements(uint32_t range_count, const slc_adamw_range *ranges);

/* Finds the elements from..to-1 of `range` that lie in first..last-1 of all elements. `range` begins at element *begin
 * of all; *begin moves on to the next range. Returns false if there are none. */
static inline bool slc_adamw_part_of(const slc_adamw_range *range, uint64_t *begin, uint64_t first, uint64_t last,
                                     uint64_t *from, uint64_t *to)
{
    uint64_t at = *begin, end = at + range->count;
    *begin = at + (range->count + SLC_ADAMW_UNIT - 1) / SLC_ADAMW_UNIT * SLC_ADAMW_UNIT;
    if (first >= end || last <= at) return false;
    *from = first > at ? first - at : 0;
    *to = (last < end ? last : end) - at;
    return true;
}
