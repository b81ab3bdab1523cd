/* Squares are exact in double; the sixteen of a grain are added in the tree i with i+8, i+4, i+2, i+1. */
#include "lib/kernels/norm/norm_cpu.h"

#include "lib/kernels/lanes.h"
#include "lib/kernels/norm/norm_bins.h"

enum { CHUNK = 64 }; /* sums first, bins then: their stores to unknown addresses would hold up the loads of x */

LANES_INLINE double grain_sum(const float *x)
{
#if defined(__AVX512F__)
    __m512d low = _mm512_cvtps_pd(_mm256_loadu_ps(x)), high = _mm512_cvtps_pd(_mm256_loadu_ps(x + 8));
    __m512d eight = _mm512_add_pd(_mm512_mul_pd(low, low), _mm512_mul_pd(high, high));
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return two[0] + two[1];
#else
    double v[8];
    for (int i = 0; i < 8; i++) v[i] = (double)x[i] * (double)x[i] + (double)x[i + 8] * (double)x[i + 8];
    for (int i = 0; i < 4; i++) v[i] += v[i + 4];
    return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

void SLC_ISA(slc_norm_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_norm_args *args = context;
    int64_t bins[SLC_NORM_BINS] = {0};
    uint64_t whole = args->count / SLC_NORM_GRAIN, end = last < whole ? last : whole;
    for (uint64_t grain = first; grain < end; grain += CHUNK) {
        double sums[CHUNK];
        uint64_t some = end - grain < CHUNK ? end - grain : CHUNK;
        for (uint64_t i = 0; i < some; i++) sums[i] = grain_sum(args->x + (grain + i) * SLC_NORM_GRAIN);
        for (uint64_t i = 0; i < some; i++) norm_bins_add(bins, sums[i]);
    }
    if (end < last) {
        float padded[SLC_NORM_GRAIN] = {0};
        memcpy(padded, args->x + end * SLC_NORM_GRAIN, (args->count - end * SLC_NORM_GRAIN) * sizeof(float));
        norm_bins_add(bins, grain_sum(padded));
    }
    for (int i = 0; i < SLC_NORM_BINS; i++)
        if (bins[i]) __atomic_fetch_add(&args->bins[i], bins[i], __ATOMIC_RELAXED);
}

void SLC_ISA(slc_finite_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_finite_args *args = context;
    const uint64_t chunk = 4096;
    for (uint64_t at = first; at < last; at += chunk) {
        uint64_t end = at + chunk < last ? at + chunk : last;
        uint32_t bad = 0;
        for (uint64_t i = at; i < end; i++) {
            uint32_t bits;
            memcpy(&bits, args->x + i, sizeof bits);
            bad |= (bits & 0x7f800000u) == 0x7f800000u;
        }
        if (bad) {
            __atomic_store_n(args->finite, false, __ATOMIC_RELAXED);
            return;
        }
    }
}
