/* Sixteen floats at a time, on every instruction set: one register of 512 bits, two of 256 or four of 128. Kernels
 * written with it give equal bits everywhere, because every operation is elementwise and rounded once, and because sums
 * always run over the same sixteen lanes and are joined in the same tree. Tails run the same code on a padded copy. */
#pragma once

#include <sluice/dtype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LANES_INLINE static inline __attribute__((always_inline, unused))

enum { LANES = 16 };

/* clang-format off */
#define LANES_PART_FORMS(prefix)                                                                                       \
    LANES_INLINE lanes_part part_fma(lanes_part a, lanes_part b, lanes_part c) { return prefix##_fmadd_ps(a, b, c); }  \
    LANES_INLINE lanes_part part_max(lanes_part a, lanes_part b) { return prefix##_max_ps(a, b); }                     \
    LANES_INLINE lanes_part part_min(lanes_part a, lanes_part b) { return prefix##_min_ps(a, b); }                     \
    LANES_INLINE lanes_part part_sqrt(lanes_part a) { return prefix##_sqrt_ps(a); }                                    \
    LANES_INLINE void part_stream(float *p, lanes_part a) { prefix##_stream_ps(p, a); }                                \
    LANES_INLINE lanes_part part_set(float a) { return prefix##_set1_ps(a); }
/* clang-format on */

#if defined(__AVX512F__)
enum { LANES_PARTS = 1 };
typedef __m512 lanes_part;
typedef __m512 __attribute__((aligned(4))) lanes_part_unaligned;
typedef int32_t lanes_bits __attribute__((vector_size(64)));
typedef uint32_t lanes_words __attribute__((vector_size(64)));
LANES_PART_FORMS(_mm512)
#elif defined(__AVX2__) && defined(__FMA__)
enum { LANES_PARTS = 2 };
typedef __m256 lanes_part;
typedef __m256 __attribute__((aligned(4))) lanes_part_unaligned;
typedef int32_t lanes_bits __attribute__((vector_size(32)));
typedef uint32_t lanes_words __attribute__((vector_size(32)));
LANES_PART_FORMS(_mm256)
#else
enum { LANES_PARTS = 4 };
typedef float lanes_part __attribute__((vector_size(16), may_alias));
typedef float lanes_part_unaligned __attribute__((vector_size(16), may_alias, aligned(4)));
typedef int32_t lanes_bits __attribute__((vector_size(16)));
typedef uint32_t lanes_words __attribute__((vector_size(16)));
LANES_INLINE lanes_part part_set(float a)
{
    return (lanes_part){a, a, a, a};
}
LANES_INLINE lanes_part part_max(lanes_part a, lanes_part b)
{
    lanes_bits greater = a > b; /* like the x86 instruction, gives b if either is NaN */
    return (lanes_part)((greater & (lanes_bits)a) | (~greater & (lanes_bits)b));
}
LANES_INLINE lanes_part part_min(lanes_part a, lanes_part b)
{
    lanes_bits less = a < b;
    return (lanes_part)((less & (lanes_bits)a) | (~less & (lanes_bits)b));
}
#if defined(__x86_64__)
LANES_INLINE lanes_part part_sqrt(lanes_part a)
{
    return _mm_sqrt_ps(a);
}
LANES_INLINE void part_stream(float *p, lanes_part a)
{
    _mm_stream_ps(p, a);
}
#else
LANES_INLINE lanes_part part_sqrt(lanes_part a)
{
    for (int i = 0; i < 4; i++) a[i] = __builtin_sqrtf(a[i]);
    return a;
}
LANES_INLINE void part_stream(float *p, lanes_part a)
{
    *(lanes_part_unaligned *)p = a;
}
#endif
#if !defined(__x86_64__)
LANES_INLINE lanes_part part_fma(lanes_part a, lanes_part b, lanes_part c)
{
    for (int i = 0; i < 4; i++) a[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return a;
}
#else
/* The first x86-64 processors have no fma, so it is computed in double: the product is exact, the sum's error is known
 * exactly (Knuth's TwoSum), and rounding the sum to odd makes the second rounding, to float, the only one (Boldo &
 * Melquiond, IEEE TC 2008). */
LANES_INLINE __m128d pair_fma_odd(__m128d a, __m128d b, __m128d c)
{
    __m128d product = a * b, sum = product + c, part = sum - product;
    __m128d error = (product - (sum - part)) + (c - part);
    __m128i up = (__m128i)(error > 0), down = (__m128i)(error < 0), negative = (__m128i)(sum < 0);
    __m128i bits = (__m128i)sum, even = (bits & 1) - 1;
    __m128i step = ((up ^ negative) & 2) - 1; /* +1 if the exact value is larger in magnitude than the sum, else -1 */
    return (__m128d)(bits + (step & (up | down) & even));
}
/* part_fma_odd is rarely called, and inlining it would make these kernels ten times as long. */
static __attribute__((noinline, cold, unused)) lanes_part part_fma_odd(lanes_part a, lanes_part b, lanes_part c)
{
    __m128 a2 = _mm_movehl_ps(a, a), b2 = _mm_movehl_ps(b, b), c2 = _mm_movehl_ps(c, c);
    __m128d low = pair_fma_odd(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c));
    __m128d high = pair_fma_odd(_mm_cvtps_pd(a2), _mm_cvtps_pd(b2), _mm_cvtps_pd(c2));
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
/* Rounding the plain sum to float is right too, unless that sum lies halfway between two floats (its low 29 bits are
 * 1000...) or the result is subnormal, where the halfway points differ. Both are rare. */
LANES_INLINE lanes_part part_fma(lanes_part a, lanes_part b, lanes_part c)
{
    __m128 a2 = _mm_movehl_ps(a, a), b2 = _mm_movehl_ps(b, b), c2 = _mm_movehl_ps(c, c);
    __m128d low = _mm_cvtps_pd(a) * _mm_cvtps_pd(b) + _mm_cvtps_pd(c);
    __m128d high = _mm_cvtps_pd(a2) * _mm_cvtps_pd(b2) + _mm_cvtps_pd(c2);
    __m128 result = _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));

    __m128i words = (__m128i)_mm_shuffle_ps((__m128)low, (__m128)high, 0x88);
    __m128i halfway = _mm_cmpeq_epi32(words & _mm_set1_epi32(0x1fffffff), _mm_set1_epi32(0x10000000));
    __m128 tiny = _mm_cmple_ps(_mm_andnot_ps(_mm_set1_ps(-0.0f), result), _mm_set1_ps(0x1p-126f));
    if (__builtin_expect(_mm_movemask_ps((__m128)halfway) | _mm_movemask_ps(tiny), 0)) return part_fma_odd(a, b, c);
    return result;
}
#endif
#endif

typedef struct {
    lanes_part part[LANES_PARTS];
} lanes;

enum { LANES_WIDTH = LANES / LANES_PARTS };

/* clang-format off */
#define LANES_EACH(expression)                        \
    lanes r;                                          \
    _Pragma("GCC unroll 4")                           \
    for (int i = 0; i < LANES_PARTS; i++) r.part[i] = (expression); \
    return r

LANES_INLINE lanes lanes_set(float a) { LANES_EACH(part_set(a)); }
LANES_INLINE lanes lanes_load(const float *p) { LANES_EACH(*(const lanes_part_unaligned *)(p + i * LANES_WIDTH)); }
LANES_INLINE lanes lanes_add(lanes a, lanes b) { LANES_EACH(a.part[i] + b.part[i]); }
LANES_INLINE lanes lanes_sub(lanes a, lanes b) { LANES_EACH(a.part[i] - b.part[i]); }
LANES_INLINE lanes lanes_mul(lanes a, lanes b) { LANES_EACH(a.part[i] * b.part[i]); }
LANES_INLINE lanes lanes_div(lanes a, lanes b) { LANES_EACH(a.part[i] / b.part[i]); }
LANES_INLINE lanes lanes_fma(lanes a, lanes b, lanes c) { LANES_EACH(part_fma(a.part[i], b.part[i], c.part[i])); }
LANES_INLINE lanes lanes_max(lanes a, lanes b) { LANES_EACH(part_max(a.part[i], b.part[i])); }
LANES_INLINE lanes lanes_sqrt(lanes a) { LANES_EACH(part_sqrt(a.part[i])); }
/* clang-format on */

LANES_INLINE void lanes_store(float *p, lanes a)
{
#pragma GCC unroll 4
    for (int i = 0; i < LANES_PARTS; i++) *(lanes_part_unaligned *)(p + i * LANES_WIDTH) = a.part[i];
}

/* Stores past the cache; p is 64-byte aligned. Call lanes_stream_end after the last store. */
LANES_INLINE void lanes_stream(float *p, lanes a)
{
#pragma GCC unroll 4
    for (int i = 0; i < LANES_PARTS; i++) part_stream(p + i * LANES_WIDTH, a.part[i]);
}
LANES_INLINE void lanes_stream_end(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* Loads the first `count` (1..15) floats of p; the other lanes are `fill`. */
LANES_INLINE lanes lanes_load_tail(const float *p, uint64_t count, float fill)
{
    float padded[LANES];
    for (int i = 0; i < LANES; i++) padded[i] = fill;
    memcpy(padded, p, count * sizeof *p);
    return lanes_load(padded);
}
LANES_INLINE void lanes_store_tail(float *p, uint64_t count, lanes a)
{
    float padded[LANES];
    lanes_store(padded, a);
    memcpy(p, padded, count * sizeof *p);
}

/* Loads all sixteen or the tail, for loops that step by LANES and end anywhere. */
LANES_INLINE lanes lanes_load_some(const float *p, uint64_t left, float fill)
{
    return left >= LANES ? lanes_load(p) : lanes_load_tail(p, left, fill);
}
LANES_INLINE void lanes_store_some(float *p, uint64_t left, lanes a)
{
    if (left >= LANES)
        lanes_store(p, a);
    else
        lanes_store_tail(p, left, a);
}

/* ---- Arrays of either type. `at` counts elements. `dtype` is a constant wherever these are inlined. ---- */

LANES_INLINE lanes lanes_load_bf16(const uint16_t *p)
{
#if defined(__AVX512F__)
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return (lanes){{_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))}};
#elif defined(__AVX2__) && defined(__FMA__)
    LANES_EACH(_mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + i * LANES_WIDTH))), 16)));
#elif defined(__x86_64__)
    LANES_EACH((lanes_part)_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)(p + i * 4))));
#else
    float wide[LANES];
    for (int i = 0; i < LANES; i++) wide[i] = sluice_bf16_to_float(p[i]);
    return lanes_load(wide);
#endif
}

/* Rounds as sluice_bf16_from_float does, with integers, because the processor's own instructions flush subnormal
 * numbers. The result is in the upper half of each word. */
LANES_INLINE lanes_words part_round_bf16(lanes_part a)
{
    lanes_words bits = (lanes_words)a, rounded = bits + 0x7fff + (bits >> 16 & 1);
#if defined(__AVX512F__)
    __mmask16 not_number = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    return (lanes_words)_mm512_mask_or_epi32((__m512i)rounded, not_number, (__m512i)bits, _mm512_set1_epi32(0x400000));
#else
    lanes_words not_number = (lanes_words)(a != a), quiet = bits | 0x400000;
    return (not_number & quiet) | (~not_number & rounded);
#endif
}

/* Gives the value that storing and loading again would give. */
LANES_INLINE lanes lanes_round_bf16(lanes a)
{
    LANES_EACH((lanes_part)(part_round_bf16(a.part[i]) & 0xffff0000u));
}

LANES_INLINE void lanes_store_bf16(uint16_t *p, lanes a)
{
#if defined(__AVX512F__)
    __m512i bits = _mm512_srli_epi32((__m512i)part_round_bf16(a.part[0]), 16);
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(bits));
#elif defined(__AVX2__) && defined(__FMA__)
    __m256i low = _mm256_srai_epi32((__m256i)part_round_bf16(a.part[0]), 16);
    __m256i high = _mm256_srai_epi32((__m256i)part_round_bf16(a.part[1]), 16);
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8));
#elif defined(__x86_64__)
    __m128i bits[LANES_PARTS];
    for (int i = 0; i < LANES_PARTS; i++) bits[i] = _mm_srai_epi32((__m128i)part_round_bf16(a.part[i]), 16);
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi32(bits[0], bits[1]));
    _mm_storeu_si128((__m128i *)(p + 8), _mm_packs_epi32(bits[2], bits[3]));
#else
    float wide[LANES];
    uint16_t narrow[LANES];
    lanes_store(wide, a);
    for (int i = 0; i < LANES; i++) narrow[i] = sluice_bf16_from_float(wide[i]);
    memcpy(p, narrow, sizeof narrow); /* p may point into an array of floats */
#endif
}

/* Stores past the cache; p is 32-byte aligned. */
LANES_INLINE void lanes_stream_bf16(uint16_t *p, lanes a)
{
    uint16_t packed[LANES];
    lanes_store_bf16(packed, a);
#if defined(__AVX2__)
    _mm256_stream_si256((__m256i *)(void *)p, _mm256_loadu_si256((const __m256i *)(const void *)packed));
#elif defined(__x86_64__)
    _mm_stream_si128((__m128i *)(void *)p, _mm_loadu_si128((const __m128i *)(const void *)packed));
    _mm_stream_si128((__m128i *)(void *)(p + 8), _mm_loadu_si128((const __m128i *)(const void *)(packed + 8)));
#else
    memcpy(p, packed, sizeof packed);
#endif
}

LANES_INLINE lanes lanes_load_as(sluice_dtype dtype, const void *p, uint64_t at)
{
    return dtype == SLUICE_BF16 ? lanes_load_bf16((const uint16_t *)p + at) : lanes_load((const float *)p + at);
}

LANES_INLINE void lanes_store_as(sluice_dtype dtype, void *p, uint64_t at, lanes a)
{
    if (dtype == SLUICE_BF16)
        lanes_store_bf16((uint16_t *)p + at, a);
    else
        lanes_store((float *)p + at, a);
}

/* Loads all sixteen, or the first `left` followed by `fill`. */
LANES_INLINE lanes lanes_load_some_as(sluice_dtype dtype, const void *p, uint64_t at, uint64_t left, float fill)
{
    if (dtype == SLUICE_FP32) return lanes_load_some((const float *)p + at, left, fill);
    if (left >= LANES) return lanes_load_bf16((const uint16_t *)p + at);
    float padded[LANES];
    for (uint64_t i = 0; i < LANES; i++)
        padded[i] = i < left ? sluice_bf16_to_float(((const uint16_t *)p)[at + i]) : fill;
    return lanes_load(padded);
}

LANES_INLINE void lanes_store_some_as(sluice_dtype dtype, void *p, uint64_t at, uint64_t left, lanes a)
{
    if (dtype == SLUICE_FP32) {
        lanes_store_some((float *)p + at, left, a);
    } else if (left >= LANES) {
        lanes_store_bf16((uint16_t *)p + at, a);
    } else {
        uint16_t padded[LANES];
        lanes_store_bf16(padded, a);
        memcpy((uint16_t *)p + at, padded, left * sizeof *padded);
    }
}

/* Loads thirty-two bf16 elements: those at even and those at odd places. For elementwise kernels, which need no
 * order. */
LANES_INLINE void lanes_load_pair_bf16(const uint16_t *p, lanes *even, lanes *odd)
{
#pragma GCC unroll 4
    for (int i = 0; i < LANES_PARTS; i++) {
        lanes_words both;
        memcpy(&both, p + 2 * i * LANES_WIDTH, sizeof both);
        even->part[i] = (lanes_part)(both << 16);
        odd->part[i] = (lanes_part)(both & 0xffff0000u);
    }
}
LANES_INLINE void lanes_store_pair_bf16(uint16_t *p, lanes even, lanes odd, bool stream)
{
#pragma GCC unroll 4
    for (int i = 0; i < LANES_PARTS; i++) {
        lanes_words low = part_round_bf16(even.part[i]) >> 16, high = part_round_bf16(odd.part[i]) & 0xffff0000u;
        lanes_part both = (lanes_part)(low | high);
        if (stream)
            part_stream((float *)(void *)(p + 2 * i * LANES_WIDTH), both);
        else
            memcpy(p + 2 * i * LANES_WIDTH, &both, sizeof both);
    }
}

/* Stores past the cache if `stream` is set and all sixteen are stored; p + at is then aligned to their size. Call
 * lanes_stream_end after the last store. */
LANES_INLINE void lanes_stream_some_as(sluice_dtype dtype, void *p, uint64_t at, uint64_t left, lanes a, bool stream)
{
    if (!stream || left < LANES)
        lanes_store_some_as(dtype, p, at, left, a);
    else if (dtype == SLUICE_BF16)
        lanes_stream_bf16((uint16_t *)p + at, a);
    else
        lanes_stream((float *)p + at, a);
}

/* Calls function(dtype, ...) with the type as a constant, so that its loop is compiled for each; likewise
 * function(first, second, ...). */
#define LANES_BY_TYPE(dtype, function, ...)                                                                            \
    ((dtype) == SLUICE_BF16 ? function(SLUICE_BF16, __VA_ARGS__) : function(SLUICE_FP32, __VA_ARGS__))
#define LANES_BY_TYPES(first, second, function, ...)                                                                   \
    ((first) == SLUICE_BF16 ? LANES_BY_SECOND_TYPE(second, function, SLUICE_BF16, __VA_ARGS__)                         \
                            : LANES_BY_SECOND_TYPE(second, function, SLUICE_FP32, __VA_ARGS__))
#define LANES_BY_SECOND_TYPE(second, function, first, ...)                                                             \
    ((second) == SLUICE_BF16 ? function(first, SLUICE_BF16, __VA_ARGS__) : function(first, SLUICE_FP32, __VA_ARGS__))

/* Defines a range kernel that calls function(the type that the member `dtype` of its arguments names, arguments, first,
 * last), or with two such types. */
#define LANES_KERNEL(name, arguments, dtype, function)                                                                 \
    void SLC_ISA(name)(const void *context, uint32_t part, uint64_t first, uint64_t last)                              \
    {                                                                                                                  \
        (void)part;                                                                                                    \
        const arguments *args = context;                                                                               \
        LANES_BY_TYPE(args->dtype, function, args, first, last);                                                       \
    }
#define LANES_KERNEL_OF_TYPES(name, arguments, one, other, function)                                                   \
    void SLC_ISA(name)(const void *context, uint32_t part, uint64_t first, uint64_t last)                              \
    {                                                                                                                  \
        (void)part;                                                                                                    \
        const arguments *args = context;                                                                               \
        LANES_BY_TYPES(args->one, args->other, function, args, first, last);                                           \
    }

/* Reads one element. */
LANES_INLINE float lanes_get_as(sluice_dtype dtype, const void *p, uint64_t at)
{
    return dtype == SLUICE_BF16 ? sluice_bf16_to_float(((const uint16_t *)p)[at]) : ((const float *)p)[at];
}
LANES_INLINE void lanes_put_as(sluice_dtype dtype, void *p, uint64_t at, float value)
{
    if (dtype == SLUICE_BF16)
        ((uint16_t *)p)[at] = sluice_bf16_from_float(value);
    else
        ((float *)p)[at] = value;
}

/* Joins sixteen lanes in a fixed tree: i with i+8, i+4, i+2, i+1. */
#if defined(__x86_64__)
#define LANES_TREE(a, operation)                                                                                       \
    __m128 four = operation(operation(LANES_QUARTER(a, 0), LANES_QUARTER(a, 2)),                                       \
                            operation(LANES_QUARTER(a, 1), LANES_QUARTER(a, 3)));                                      \
    __m128 two = operation(four, _mm_movehl_ps(four, four));                                                           \
    return operation(two, _mm_shuffle_ps(two, two, 1))[0]
#if defined(__AVX512F__)
#define LANES_QUARTER(a, i) _mm512_extractf32x4_ps((a).part[0], i)
#elif defined(__AVX2__) && defined(__FMA__)
#define LANES_QUARTER(a, i) _mm256_extractf128_ps((a).part[(i) / 2], (i) % 2)
#else
#define LANES_QUARTER(a, i) ((a).part[i])
#endif
LANES_INLINE float lanes_sum(lanes a)
{
    LANES_TREE(a, _mm_add_ps);
}
LANES_INLINE float lanes_largest(lanes a)
{
    LANES_TREE(a, _mm_max_ps);
}
#else
LANES_INLINE float lanes_sum(lanes a)
{
    float v[LANES];
    lanes_store(v, a);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) v[i] += v[i + half];
    return v[0];
}
LANES_INLINE float lanes_largest(lanes a)
{
    float v[LANES];
    lanes_store(v, a);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) v[i] = v[i] > v[i + half] ? v[i] : v[i + half];
    return v[0];
}
#endif

LANES_INLINE lanes_part part_choose(lanes_bits mask, lanes_part a, lanes_part b)
{
    return (lanes_part)((mask & (lanes_bits)a) | (~mask & (lanes_bits)b));
}

/* Returns the first `count` lanes of a, followed by `fill`. */
LANES_INLINE lanes lanes_first(lanes a, uint64_t count, float fill)
{
    static const float number[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    lanes index = lanes_load(number);
    lanes_part limit = part_set(count < LANES ? (float)count : (float)LANES);
    LANES_EACH(part_choose((lanes_bits)(index.part[i] < limit), a.part[i], part_set(fill)));
}

/* Sets bit i if lane i is below zero. */
LANES_INLINE uint32_t lanes_below_zero(lanes a)
{
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(a.part[0], _mm512_setzero_ps(), _CMP_LT_OQ);
#elif defined(__AVX2__) && defined(__FMA__)
    __m256 zero = _mm256_setzero_ps();
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a.part[0], zero, _CMP_LT_OQ)) |
           (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a.part[1], zero, _CMP_LT_OQ)) << 8;
#else
    uint32_t bits = 0;
    for (int i = 0; i < LANES_PARTS; i++) {
#if defined(__x86_64__)
        bits |= (uint32_t)_mm_movemask_ps(_mm_cmplt_ps(a.part[i], _mm_setzero_ps())) << i * LANES_WIDTH;
#else
        for (int lane = 0; lane < LANES_WIDTH; lane++)
            bits |= (uint32_t)(a.part[i][lane] < 0) << (i * LANES_WIDTH + lane);
#endif
    }
    return bits;
#endif
}
