/* Norms: from grains to bins, and bins packed into fewer words. */
#include "lib/kernels/norm/norm.h"

#include "lib/kernels/dispatch.h"
#include "lib/kernels/norm/norm_result.h"

enum { GRAIN_ELEMENTS = 32768, DIGITS_A_WORD = NORM_DIGITS / (SLC_NORM_WORDS - 1) };
_Static_assert(DIGITS_A_WORD *(SLC_NORM_WORDS - 1) == NORM_DIGITS, "words hold all digits");

static void norm_add_host(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, int64_t *bins)
{
    slc_norm_args args = {.dtype = dtype, .x = x, .count = count, .bins = bins};
    uint64_t grains = (count + SLC_NORM_GRAIN - 1) / SLC_NORM_GRAIN;
    slc_host_run(stream, grains, GRAIN_ELEMENTS / SLC_NORM_GRAIN, 1, SLC_ISA_PICK(slc_norm_range), &args);
}

sluice_status slc_norm_add(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, int64_t *bins)
{
    return SLC_DEVICE_RUN(stream, norm_add, dtype, count, x, bins);
}

static void all_finite_host(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, bool *finite)
{
    slc_finite_args args = {.dtype = dtype, .x = x, .finite = finite};
    slc_host_run(stream, count, GRAIN_ELEMENTS, 16, SLC_ISA_PICK(slc_finite_range), &args);
}

sluice_status slc_all_finite(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, bool *finite)
{
    return SLC_DEVICE_RUN(stream, all_finite, dtype, count, x, finite);
}

/* Puts four digits into each word; a word is then a count for the bin of its lowest digit. */
void slc_norm_pack(const int64_t *bins, int64_t *words)
{
    int64_t digit[NORM_DIGITS];
    norm_resolve(bins, digit);
    for (int w = 0; w < SLC_NORM_WORDS - 1; w++) {
        words[w] = 0;
        for (int i = DIGITS_A_WORD; i-- > 0;) words[w] = words[w] << NORM_BIN_BITS | digit[DIGITS_A_WORD * w + i];
    }
    words[SLC_NORM_WORDS - 1] = bins[NORM_NON_FINITE];
}

/* The highest word belongs above the last bin, so it goes there multiplied. */
void slc_norm_unpack(const int64_t *words, int64_t *bins)
{
    const int top = SLC_NORM_WORDS - 2, last = NORM_NON_FINITE - 1;
    memset(bins, 0, SLC_NORM_BINS * sizeof *bins);
    for (int w = 0; w < top; w++) bins[DIGITS_A_WORD * w] = words[w];
    bins[last] = words[top] << NORM_BIN_BITS * (DIGITS_A_WORD * top - last);
    bins[NORM_NON_FINITE] = words[SLC_NORM_WORDS - 1];
}

double slc_norm_result(const int64_t *bins)
{
    return norm_result(bins);
}
