/* From grains to bins, and from bins to a number: carries are resolved exactly, then an integer square root of the top
 * 128 bits with a sticky bit gives the correctly rounded result. */
#include "lib/kernels/norm/norm.h"

#include "lib/device/cuda.h"
#include "lib/kernels/host.h"
#include "lib/kernels/norm/norm_bins.h"
#include "lib/kernels/norm/norm_cpu.h"
#include "lib/kernels/norm/norm_cuda.h"

#include <math.h>

enum { GRAIN_ELEMENTS = 32768, DIGITS = SLC_NORM_BINS - 1 + 5 /* + 5: room for the carries of full bins */ };
enum { DIGITS_A_WORD = DIGITS / (SLC_NORM_WORDS - 1) };
_Static_assert(DIGITS_A_WORD *(SLC_NORM_WORDS - 1) == DIGITS, "words hold all digits");

sluice_status slc_norm_add(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, int64_t *bins)
{
    if (SLC_ON_CUDA(stream)) return slc_norm_add_cuda(stream, dtype, count, x, bins);
    sluice_status status = slc_host_check(stream, "norm");
    if (status) return status;
    slc_norm_args args = {.dtype = dtype, .x = x, .count = count, .bins = bins};
    uint64_t grains = (count + SLC_NORM_GRAIN - 1) / SLC_NORM_GRAIN;
    slc_host_run(stream, grains, GRAIN_ELEMENTS / SLC_NORM_GRAIN, 1, SLC_ISA_PICK(slc_norm_range), &args);
    return SLUICE_OK;
}

sluice_status slc_all_finite(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, bool *finite)
{
    if (SLC_ON_CUDA(stream)) return slc_all_finite_cuda(stream, dtype, count, x, finite);
    sluice_status status = slc_host_check(stream, "all_finite");
    if (status) return status;
    slc_finite_args args = {.dtype = dtype, .x = x, .finite = finite};
    slc_host_run(stream, count, GRAIN_ELEMENTS, 16, SLC_ISA_PICK(slc_finite_range), &args);
    return SLUICE_OK;
}

typedef unsigned __int128 uint128;

/* Returns the floor of the square root of n >= 2^126; *rest says that it is not exact. The guess has a relative error
 * of 2^-52, and one Newton step brings its absolute error below one. */
static uint64_t integer_root(uint128 n, bool *rest)
{
    const double guess = sqrt((double)n);
    uint128 root = guess < 0x1p64 ? (uint128)guess : UINT64_MAX;
    root = (root + n / root) / 2;
    if (root > UINT64_MAX) root = UINT64_MAX;
    while (root * root > n) root--;
    while (root < UINT64_MAX && (root + 1) * (root + 1) <= n) root++;
    *rest = root * root != n;
    return (uint64_t)root;
}

static double round_to_double(uint64_t mantissa, bool sticky, int exponent) /* mantissa >= 2^63 */
{
    const unsigned drop = 11;
    uint64_t kept = mantissa >> drop, lost = mantissa & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    if (lost > half || (lost == half && (sticky || (kept & 1)))) kept++;
    return ldexp((double)kept, exponent + (int)drop);
}

/* Turns the sum in the bins into digits of NORM_BIN_BITS. */
static void resolve(const int64_t *bins, int64_t digit[DIGITS])
{
    int64_t carry = 0;
    for (int i = 0; i < DIGITS; i++) {
        int64_t sum = (i < NORM_NON_FINITE ? bins[i] : 0) + carry;
        digit[i] = sum & ((1 << NORM_BIN_BITS) - 1);
        carry = sum >> NORM_BIN_BITS;
    }
}

/* Puts four digits into each word; a word is then a count for the bin of its lowest digit. */
void slc_norm_pack(const int64_t *bins, int64_t *words)
{
    int64_t digit[DIGITS];
    resolve(bins, digit);
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
    if (bins[NORM_NON_FINITE]) return INFINITY;
    int64_t digit[DIGITS];
    int top = DIGITS - 1;
    resolve(bins, digit);
    while (top >= 0 && !digit[top]) top--;
    if (top < 0) return 0.0;

    /* The ten highest digits have 109 to 120 bits, more than the square of a number halfway between two doubles. */
    int lowest = top - 9 > 0 ? top - 9 : 0;
    uint128 n = 0;
    bool sticky = false, rest;
    for (int i = top; i >= lowest; i--) n = n << NORM_BIN_BITS | (uint128)digit[i];
    for (int i = 0; i < lowest; i++) sticky = sticky || digit[i];
    int exponent = NORM_BIN_BITS * lowest + NORM_LOWEST; /* even, and it stays even */
    if (sticky) {                                        /* makes room for one bit that represents all lower digits */
        n = n << 2 | 1;
        exponent -= 2;
    }
    while (!(n >> 126)) {
        n <<= 2;
        exponent -= 2;
    }
    uint64_t root = integer_root(n, &rest);
    return round_to_double(root, rest, exponent / 2);
}
