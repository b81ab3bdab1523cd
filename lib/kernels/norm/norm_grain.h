/* Sums of grains. Squares are exact in double; the sixteen of a grain are added in the tree i with i+8, i+4, i+2,
 * i+1. */
#pragma once

#include "lib/kernels/lanes.h"

LANES_INLINE double grain_sum(const float *x)
{
#if defined(__AVX512F__)
    __m512d low = _mm512_cvtps_pd(_mm256_loadu_ps(x)), high = _mm512_cvtps_pd(_mm256_loadu_ps(x + 8));
    __m512d eight = _mm512_add_pd(_mm512_mul_pd(low, low), _mm512_mul_pd(high, high));
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return two[0] + two[1];
#elif defined(__AVX2__)
    __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x)), b = _mm256_cvtps_pd(_mm_loadu_ps(x + 4));
    __m256d c = _mm256_cvtps_pd(_mm_loadu_ps(x + 8)), d = _mm256_cvtps_pd(_mm_loadu_ps(x + 12));
    __m256d four = _mm256_add_pd(_mm256_add_pd(_mm256_mul_pd(a, a), _mm256_mul_pd(c, c)),
                                 _mm256_add_pd(_mm256_mul_pd(b, b), _mm256_mul_pd(d, d)));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return two[0] + two[1];
#else
    double v[8];
    for (int i = 0; i < 8; i++) v[i] = (double)x[i] * (double)x[i] + (double)x[i + 8] * (double)x[i + 8];
    for (int i = 0; i < 4; i++) v[i] += v[i + 4];
    return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

/* Sums a grain that is in registers. */
LANES_INLINE double grain_sum_lanes(lanes a)
{
    float x[LANES];
    lanes_store(x, a);
    return grain_sum(x);
}
