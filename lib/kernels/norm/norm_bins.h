/* Adds a non-negative double exactly to integer bins. Bin j counts units of 2^(12 j - 298): squares of floats are
 * multiples of 2^-298, and sums of sixteen stay below 2^260. A value's 53 bits, shifted to its bin's border, are at
 * most 64; they go in pieces of 24 bits to bins j, j+2 and j+4, so that 2^39 grains fit before a bin overflows. */
#pragma once

#include "lib/kernels/norm/norm.h"

#include <string.h>

enum { NORM_BIN_BITS = 12, NORM_LOWEST = -298, NORM_PIECE_BITS = 24, NORM_NON_FINITE = SLC_NORM_BINS - 1 };

static inline void norm_bins_add(int64_t *bins, double grain)
{
    uint64_t bits;
    memcpy(&bits, &grain, sizeof bits);
    unsigned exponent = (unsigned)(bits >> 52) & 0x7ff;
    if (exponent == 0x7ff) {
        bins[NORM_NON_FINITE]++;
        return;
    }
    if (exponent == 0) return; /* it is zero: a sum of squares of floats is never subnormal */
    uint64_t mantissa = (bits & ((1ull << 52) - 1)) | 1ull << 52;
    int place = (int)exponent - 1075 - NORM_LOWEST; /* place of the lowest bit */
    if (place < 0) {
        mantissa >>= -place; /* these bits are zero */
        place = 0;
    }
    unsigned bin = (unsigned)place / NORM_BIN_BITS;
    uint64_t shifted = mantissa << ((unsigned)place % NORM_BIN_BITS);
    const uint64_t piece = (1ull << NORM_PIECE_BITS) - 1;
    bins[bin] += (int64_t)(shifted & piece);
    bins[bin + 2] += (int64_t)(shifted >> NORM_PIECE_BITS & piece);
    bins[bin + 4] += (int64_t)(shifted >> 2 * NORM_PIECE_BITS);
}

/* Adds one thread's bins to the shared ones, atomically. */
static inline void norm_bins_join(int64_t *shared, const int64_t *bins)
{
    for (int i = 0; i < SLC_NORM_BINS; i++)
        if (bins[i]) __atomic_fetch_add(&shared[i], bins[i], __ATOMIC_RELAXED);
}
