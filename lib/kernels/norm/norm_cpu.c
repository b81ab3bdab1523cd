/* Sums grains of sixteen and puts them into bins.
 * norm_test.c covers this file. */
#include "lib/kernels/norm/norm.h"

#include "lib/kernels/lanes.h"
#include "lib/kernels/norm/norm_bins.h"
#include "lib/kernels/norm/norm_grain.h"

enum { CHUNK = 64 }; /* sums come first, then bins: stores to unknown addresses would hold up the loads of x */

LANES_INLINE double grain_sum_as(sluice_dtype dtype, const void *x, uint64_t grain)
{
    if (dtype == SLUICE_FP32) return grain_sum((const float *)x + grain * SLC_NORM_GRAIN);
    return grain_sum_lanes(lanes_load_bf16((const uint16_t *)x + grain * SLC_NORM_GRAIN));
}

LANES_INLINE void norm_range(sluice_dtype dtype, const slc_norm_args *args, uint64_t first, uint64_t last)
{
    int64_t bins[SLC_NORM_BINS] = {0};
    uint64_t whole = args->count / SLC_NORM_GRAIN, end = last < whole ? last : whole;
    for (uint64_t grain = first; grain < end; grain += CHUNK) {
        double sums[CHUNK];
        uint64_t some = end - grain < CHUNK ? end - grain : CHUNK;
        for (uint64_t i = 0; i < some; i++) sums[i] = grain_sum_as(dtype, args->x, grain + i);
        for (uint64_t i = 0; i < some; i++) norm_bins_add(bins, sums[i]);
    }
    if (end < last) {
        uint64_t at = end * SLC_NORM_GRAIN;
        norm_bins_add(bins, grain_sum_lanes(lanes_load_some_as(dtype, args->x, at, args->count - at, 0.0f)));
    }
    norm_bins_join(args->bins, bins);
}

LANES_KERNEL(slc_norm_range, slc_norm_args, dtype, norm_range)

/* Returns 1 if the exponent of element i is all ones, else 0. */
LANES_INLINE uint32_t is_bad(sluice_dtype dtype, const void *x, uint64_t i)
{
    if (dtype == SLUICE_BF16) return (((const uint16_t *)x)[i] & 0x7f80u) == 0x7f80u;
    uint32_t bits;
    memcpy(&bits, (const float *)x + i, sizeof bits);
    return (bits & 0x7f800000u) == 0x7f800000u;
}

LANES_INLINE void finite_range(sluice_dtype dtype, const slc_finite_args *args, uint64_t first, uint64_t last)
{
    const uint64_t chunk = 4096;
    for (uint64_t at = first; at < last; at += chunk) {
        uint64_t end = at + chunk < last ? at + chunk : last;
        uint32_t bad = 0;
        for (uint64_t i = at; i < end; i++) bad |= is_bad(dtype, args->x, i);
        if (bad) {
            __atomic_store_n(args->finite, false, __ATOMIC_RELAXED);
            return;
        }
    }
}

LANES_KERNEL(slc_finite_range, slc_finite_args, dtype, finite_range)
