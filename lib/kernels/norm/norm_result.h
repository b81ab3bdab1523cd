/* Makes a number of bins, on the host and in kernels of the GPU: carries are resolved exactly, then an integer square
 * root of the top 128 bits with a sticky bit gives the correctly rounded result. It needs only integers and roundings
 * that are the same everywhere, so the bits are too. */
#pragma once

#include "lib/kernels/norm/norm_bins.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

enum {
    NORM_DIGITS = SLC_NORM_BINS - 1 + 5, /* + 5: room for the carries of full bins */
    NORM_DIGITS_A_WORD = NORM_DIGITS / (SLC_NORM_WORDS - 1)
};
static_assert((int)NORM_DIGITS_A_WORD * (SLC_NORM_WORDS - 1) == (int)NORM_DIGITS, "words hold all digits");

typedef unsigned __int128 norm_uint128;

/* Returns the floor of the square root of n >= 2^126; *rest says that it is not exact. The guess has a relative error
 * of 2^-52, and one Newton step brings its absolute error below one. */
static inline SLC_HOST_AND_GPU uint64_t norm_integer_root(norm_uint128 n, bool *rest)
{
    const double guess = sqrt((double)(uint64_t)(n >> 64) * 0x1p64 + (double)(uint64_t)n);
    norm_uint128 root = guess < 0x1p64 ? (uint64_t)guess : UINT64_MAX;
    root = (root + n / root) / 2;
    if (root > UINT64_MAX) root = UINT64_MAX;
    while (root * root > n) root--;
    while (root < UINT64_MAX && (root + 1) * (root + 1) <= n) root++;
    *rest = root * root != n;
    return (uint64_t)root;
}

static inline SLC_HOST_AND_GPU double norm_round_to_double(uint64_t mantissa, bool sticky,
                                                           int exponent) /* mantissa >= 2^63 */
{
    const unsigned drop = 11;
    uint64_t kept = mantissa >> drop, lost = mantissa & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    if (lost > half || (lost == half && (sticky || (kept & 1)))) kept++;
    return ldexp((double)kept, exponent + (int)drop);
}

/* Turns the sum in the bins into digits of NORM_BIN_BITS. */
static inline SLC_HOST_AND_GPU void norm_resolve(const int64_t *bins, int64_t digit[NORM_DIGITS])
{
    int64_t carry = 0;
    for (int i = 0; i < NORM_DIGITS; i++) {
        int64_t sum = (i < NORM_NON_FINITE ? bins[i] : 0) + carry;
        digit[i] = sum & ((1 << NORM_BIN_BITS) - 1);
        carry = sum >> NORM_BIN_BITS;
    }
}

/* Do what slc_norm_pack and slc_norm_unpack do. Four digits are put into each word; a word is then a count for the bin
 * of its lowest digit. The highest word belongs above the last bin, so it goes there multiplied. */
static inline SLC_HOST_AND_GPU void norm_pack(const int64_t *bins, int64_t *words)
{
    int64_t digit[NORM_DIGITS];
    norm_resolve(bins, digit);
    for (int w = 0; w < SLC_NORM_WORDS - 1; w++) {
        words[w] = 0;
        for (int i = NORM_DIGITS_A_WORD; i-- > 0;)
            words[w] = words[w] << NORM_BIN_BITS | digit[NORM_DIGITS_A_WORD * w + i];
    }
    words[SLC_NORM_WORDS - 1] = bins[NORM_NON_FINITE];
}

static inline SLC_HOST_AND_GPU void norm_unpack(const int64_t *words, int64_t *bins)
{
    const int top = SLC_NORM_WORDS - 2, last = NORM_NON_FINITE - 1;
    for (int i = 0; i < SLC_NORM_BINS; i++) bins[i] = 0;
    for (int w = 0; w < top; w++) bins[NORM_DIGITS_A_WORD * w] = words[w];
    bins[last] = words[top] << NORM_BIN_BITS * (NORM_DIGITS_A_WORD * top - last);
    bins[NORM_NON_FINITE] = words[SLC_NORM_WORDS - 1];
}

/* Does what slc_norm_result does. */
static inline SLC_HOST_AND_GPU double norm_result(const int64_t *bins)
{
    if (bins[NORM_NON_FINITE]) return INFINITY;
    int64_t digit[NORM_DIGITS];
    int top = NORM_DIGITS - 1;
    norm_resolve(bins, digit);
    while (top >= 0 && !digit[top]) top--;
    if (top < 0) return 0.0;

    /* The ten highest digits have 109 to 120 bits, more than the square of a number halfway between two doubles. */
    int lowest = top - 9 > 0 ? top - 9 : 0;
    norm_uint128 n = 0;
    bool sticky = false, rest;
    for (int i = top; i >= lowest; i--) n = n << NORM_BIN_BITS | (norm_uint128)digit[i];
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
    uint64_t root = norm_integer_root(n, &rest);
    return norm_round_to_double(root, rest, exponent / 2);
}
