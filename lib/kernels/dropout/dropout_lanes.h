/* The factors of dropout.h inside a kernel: dropout_factors writes them for a run of elements.
 * Sixteen blocks of Philox run in parallel, as 64-bit lanes: a product reads only their lower halves, so the upper
 * halves never have to be cleared. */
#pragma once

#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/lanes.h"

typedef uint64_t dropout_longs __attribute__((vector_size(sizeof(lanes_part))));

LANES_INLINE dropout_longs dropout_multiply(dropout_longs a, uint32_t b)
{
#if defined(__AVX512F__)
    return (dropout_longs)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi32((int32_t)b));
#elif defined(__AVX2__)
    return (dropout_longs)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi32((int32_t)b));
#elif defined(__x86_64__)
    return (dropout_longs)_mm_mul_epu32((__m128i)a, _mm_set1_epi32((int32_t)b));
#else
    return (a & UINT32_MAX) * (uint64_t)b;
#endif
}

/* Runs ten rounds on the lower halves of c[0..3]. */
LANES_INLINE void dropout_philox(dropout_longs c[4], uint64_t key)
{
    uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        dropout_longs p = dropout_multiply(c[0], 0xd2511f53u), q = dropout_multiply(c[2], 0xcd9e8d57u);
        c[0] = q >> 32 ^ c[1] ^ low, c[1] = q;
        c[2] = p >> 32 ^ c[3] ^ high, c[3] = p;
        low += 0x9e3779b9u, high += 0xbb67ae85u;
    }
}

/* Makes the factors of elements first..first+count-1. `room` holds count + 2 SLC_DROPOUT_GROUP floats; returns where in
 * it the first element's factor is. The rule's probability is in (0, 1). */
static __attribute__((noinline, unused)) const float *dropout_factors(const slc_dropout *rule, uint64_t first,
                                                                      uint64_t count, float *room)
{
    enum { WIDE = LANES_WIDTH / 2 };
    const uint64_t from = rule->first + first, group = from / SLC_DROPOUT_GROUP, end = from + count;
    const uint32_t limit = (uint32_t)((double)rule->probability * 0x1p16 + 0.5);
    const lanes_part scale = part_set(0x1p16f / (float)(65536 - limit));
    const lanes_words least = (limit << 16) + (lanes_words){0};
    float *out = room;
    for (uint64_t g = group; g * SLC_DROPOUT_GROUP < end; g++, out += SLC_DROPOUT_GROUP) {
        const uint64_t block = g * LANES;
#pragma GCC unroll 4
        for (int i = 0; i < LANES_PARTS; i++) {
            dropout_longs even[4] = {{0}}, odd[4];
            for (int lane = 0; lane < WIDE; lane++) even[0][lane] = (uint64_t)(i * LANES_WIDTH + 2 * lane);
            even[0] += block, even[1] += block >> 32;
            odd[0] = even[0] + 1, odd[1] = even[1], odd[2] = odd[3] = even[2];
            dropout_philox(even, rule->seed), dropout_philox(odd, rule->seed);
#pragma GCC unroll 4
            for (int word = 0; word < 4; word++) {
                lanes_words high = (lanes_words)((even[word] & UINT32_MAX) | odd[word] << 32), low = high << 16;
                float *at = out + 2 * word * LANES + i * LANES_WIDTH;
                *(lanes_part_unaligned *)at = (lanes_part)((lanes_words)(low >= least) & (lanes_words)scale);
                *(lanes_part_unaligned *)(at + LANES) = (lanes_part)((lanes_words)(high >= least) & (lanes_words)scale);
            }
        }
    }
    return room + (from - group * SLC_DROPOUT_GROUP);
}
