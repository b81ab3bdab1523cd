/* See gemm_few.h. gemm_test.c covers this file. */
#include "lib/kernels/gemm/gemm_few.h"

#include "lib/kernels/lanes.h"

/* a b + c, rounded once if the instruction set can do that at no cost. */
LANES_INLINE lanes multiply_add(lanes a, lanes b, lanes c)
{
#if defined(__FMA__)
    return lanes_fma(a, b, c);
#else
    return lanes_add(lanes_mul(a, b), c);
#endif
}

/* Writes one element of C. */
LANES_INLINE void finish(const slc_gemm_few_args *x, uint64_t row, uint64_t column, float sum)
{
    const slc_gemm_shape *s = x->shape;
    const uint64_t at = row * s->ldc + column;
    if (s->bias) sum += lanes_get_as(s->dtype, x->operands->bias, column);
    if (s->accumulate) sum += lanes_get_as(s->out, x->operands->c, at);
    if (s->residual) sum += lanes_get_as(s->out, x->operands->residual, at);
    lanes_put_as(s->out, x->operands->c, at, sum);
}

/* Writes the elements of C from `column` on, sixteen or the `left` that are left. */
LANES_INLINE void finish_lanes(const slc_gemm_few_args *x, uint64_t row, uint64_t column, uint64_t left, lanes sum)
{
    const slc_gemm_shape *s = x->shape;
    const uint64_t at = row * s->ldc + column;
    if (s->bias) sum = lanes_add(sum, lanes_load_some_as(s->dtype, x->operands->bias, column, left, 0));
    if (s->accumulate) sum = lanes_add(sum, lanes_load_some_as(s->out, x->operands->c, at, left, 0));
    if (s->residual) sum = lanes_add(sum, lanes_load_some_as(s->out, x->operands->residual, at, left, 0));
    lanes_store_some_as(s->out, x->operands->c, at, left, sum);
}

/* ---- B stored n x k: dot products ---- */

/* STEP: elements of B that are loaded at once; MOST: rows of A; DOTS_AHEAD: bytes of B from what is loaded to what is
 * asked for */
enum { STEP = 2 * LANES, STRANDS = 2, MOST = 2, DOTS_AHEAD = 4096 };

/* Asks for a step of B that is loaded later. By itself the processor asks early only within a row and a page. */
LANES_INLINE void prefetch_step(sluice_dtype dtype, const void *p, uint64_t at, size_t bytes)
{
    const char *place = (const char *)p + at * sluice_dtype_bytes(dtype) + bytes;
    __builtin_prefetch(place);
    if (dtype != SLUICE_BF16) __builtin_prefetch(place + LANES * sizeof(float));
}

LANES_INLINE void load_step(sluice_dtype dtype, const void *p, uint64_t at, lanes part[2])
{
    if (dtype == SLUICE_BF16) {
        lanes_load_pair_bf16((const uint16_t *)p + at, &part[0], &part[1]);
    } else {
        part[0] = lanes_load((const float *)p + at);
        part[1] = lanes_load((const float *)p + at + LANES);
    }
}

/* Adds 32 products of some rows of A and a row of B to one strand of their sums. */
LANES_INLINE void add_step(sluice_dtype dtype, const slc_gemm_few_args *x, const int rows, const float *a,
                           uint64_t begin, uint64_t k, const int strand, lanes sums[][STRANDS][2])
{
    lanes part[2];
    load_step(dtype, x->operands->b, begin + k, part);
    prefetch_step(dtype, x->operands->b, begin + k, DOTS_AHEAD);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++)
            sums[r][strand][half] = multiply_add(
                part[half], lanes_load(a + (uint64_t)r * x->lda + k + (uint64_t)half * LANES), sums[r][strand][half]);
}

/* Multiplies `rows` rows of A, from number `row` on, by one row of B; `rows` is a constant wherever this is inlined.
 * Several strands of sums, which do not wait for each other, take turns and stay in registers. */
LANES_INLINE void dots(sluice_dtype dtype, const slc_gemm_few_args *x, const int rows, uint64_t row, uint64_t column)
{
    const slc_gemm_shape *s = x->shape;
    const float *a = x->a + row * x->lda;
    const uint64_t begin = column * s->ldb, whole = s->k / STEP * STEP,
                   long_whole = s->k / (STEP * STRANDS) * STEP * STRANDS;
    lanes sums[MOST][STRANDS][2];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int i = 0; i < STRANDS; i++) sums[r][i][0] = sums[r][i][1] = lanes_set(0);
    for (uint64_t k = 0; k < long_whole; k += STEP * STRANDS)
#pragma GCC unroll 4
        for (int i = 0; i < STRANDS; i++) add_step(dtype, x, rows, a, begin, k + (uint64_t)i * STEP, i, sums);
    for (uint64_t k = long_whole; k < whole; k += STEP) add_step(dtype, x, rows, a, begin, k, 0, sums);
    for (int r = 0; r < rows; r++) {
        lanes all = lanes_add(sums[r][0][0], sums[r][0][1]);
        for (int i = 1; i < STRANDS; i++) all = lanes_add(all, lanes_add(sums[r][i][0], sums[r][i][1]));
        float sum = lanes_sum(all);
        for (uint64_t k = whole; k < s->k; k++)
            sum += a[(uint64_t)r * x->lda + k] * lanes_get_as(dtype, x->operands->b, begin + k);
        finish(x, row + (uint64_t)r, column, sum);
    }
}

LANES_INLINE void dots_range(sluice_dtype dtype, const slc_gemm_few_args *x, uint64_t first, uint64_t last)
{
    for (uint64_t column = first; column < last; column++) {
        uint64_t row = 0;
        for (; row + 2 <= x->shape->m; row += 2) dots(dtype, x, 2, row, column);
        if (row < x->shape->m) dots(dtype, x, 1, row, column);
    }
}

LANES_KERNEL(slc_gemm_few_dots, slc_gemm_few_args, dtype, dots_range)

/* ---- B stored k x n: sums by row ---- */

enum { DEEP = 8, BLOCK = 4096 }; /* rows of B that are added at once; columns whose sums stay in the cache */

/* The sums of all rows of A in thirty-two columns lie together, so that rows are never a power of two apart. */
LANES_INLINE float *sums_of(const slc_gemm_few_args *x, uint64_t row, uint64_t column)
{
    return x->sums + (column / STEP * x->shape->m + row) * STEP + column % STEP;
}

/* Adds `deep` rows of B from row k, in columns first to last, to the sums of all rows of A. Sums of bf16 lie as
 * load_step leaves them: 32 at a time, those of even columns first. */
LANES_INLINE void add_rows(sluice_dtype dtype, const slc_gemm_few_args *x, const int deep, uint64_t k, uint64_t first,
                           uint64_t last, bool fresh)
{
    const slc_gemm_shape *s = x->shape;
    uint64_t column = first;
    for (; column + STEP <= last; column += STEP) {
        lanes part[DEEP][2];
#pragma GCC unroll 8
        for (int d = 0; d < deep; d++) {
            load_step(dtype, x->operands->b, (k + (uint64_t)d) * s->ldb + column, part[d]);
            if (k + DEEP < s->k) prefetch_step(dtype, x->operands->b, (k + DEEP + (uint64_t)d) * s->ldb + column, 0);
        }
        float *sums = sums_of(x, 0, column);
        for (uint64_t row = 0; row < s->m; row++, sums += STEP) {
            const float *a = x->a + row * x->lda + k;
            lanes low = fresh ? lanes_set(0) : lanes_load(sums), high = fresh ? low : lanes_load(sums + LANES);
#pragma GCC unroll 8
            for (int d = 0; d < deep; d++) {
                const lanes factor = lanes_set(a[d]);
                low = multiply_add(part[d][0], factor, low), high = multiply_add(part[d][1], factor, high);
            }
            lanes_store(sums, low), lanes_store(sums + LANES, high);
        }
    }
    for (; column < last; column++)
        for (uint64_t row = 0; row < s->m; row++) {
            float *sum = sums_of(x, row, column);
            if (fresh) *sum = 0;
            for (int d = 0; d < deep; d++)
                *sum += x->a[row * x->lda + k + (uint64_t)d] *
                        lanes_get_as(dtype, x->operands->b, (k + (uint64_t)d) * s->ldb + column);
        }
}

/* The column whose place a column's sum has; sums of columns before `whole` were stored by whole steps. */
LANES_INLINE uint64_t place_of(sluice_dtype dtype, uint64_t column, uint64_t whole)
{
    if (dtype != SLUICE_BF16 || column >= whole) return column;
    return column / STEP * STEP + column % 2 * LANES + column % STEP / 2;
}

LANES_INLINE void sums_range(sluice_dtype dtype, const slc_gemm_few_args *x, uint64_t first, uint64_t last)
{
    const slc_gemm_shape *s = x->shape;
    for (uint64_t block = first; block < last; block += BLOCK) {
        const uint64_t end = block + BLOCK < last ? block + BLOCK : last;
        uint64_t k = 0;
        for (; k + DEEP <= s->k; k += DEEP) add_rows(dtype, x, DEEP, k, block, end, k == 0);
        for (; k < s->k; k++) add_rows(dtype, x, 1, k, block, end, k == 0);
        const uint64_t whole = block + (end - block) / STEP * STEP;
        for (uint64_t row = 0; row < s->m; row++)
            if (dtype == SLUICE_BF16)
                for (uint64_t column = block; column < end; column++)
                    finish(x, row, column, *sums_of(x, row, place_of(dtype, column, whole)));
            else
                for (uint64_t column = block; column < end; column += LANES)
                    finish_lanes(x, row, column, end - column, lanes_load(sums_of(x, row, column)));
    }
}

LANES_KERNEL(slc_gemm_few_sums, slc_gemm_few_args, dtype, sums_range)

/* ---- Sums by row in bf16, by the instruction that adds the products of two pairs at once ---- */

#if defined(__AVX512F__)
#define PAIRS_INLINE static inline __attribute__((always_inline, target("avx512bf16")))

enum { PAIRS = 8 }; /* pairs of rows of B that are added at once */

/* Interleaves thirty-two columns of rows k and k + 1 of B. In a quarter of a register with columns 0 to 7, columns 0 to
 * 3 are in pair[0] and 4 to 7 in pair[1]. If `odd`, there is no row k + 1, and zeros stand for it. */
PAIRS_INLINE void load_pair(const slc_gemm_few_args *x, uint64_t k, bool odd, uint64_t column, __mmask32 columns,
                            __m512i pair[2])
{
    const uint64_t stride = x->shape->ldb;
    const uint16_t *b = (const uint16_t *)x->operands->b + k * stride + column;
    const __m512i row = _mm512_maskz_loadu_epi16(columns, b);
    const __m512i next = odd ? _mm512_setzero_si512() : _mm512_maskz_loadu_epi16(columns, b + stride);
    pair[0] = _mm512_unpacklo_epi16(row, next), pair[1] = _mm512_unpackhi_epi16(row, next);
}

/* Asks for the rows of B that are added after these, as far as there are some. */
PAIRS_INLINE void prefetch_rows(const slc_gemm_few_args *x, uint64_t k, uint64_t column)
{
    const slc_gemm_shape *s = x->shape;
    const uint16_t *b = (const uint16_t *)x->operands->b + k * s->ldb + column;
    for (uint64_t row = k; row < s->k && row < k + 2 * PAIRS; row++, b += s->ldb) __builtin_prefetch(b);
}

/* Adds `pairs` pairs of rows of B, from row k on, to the sums of all rows of A, in thirty-two columns. `pairs` and
 * `odd` are constants wherever this is inlined. */
PAIRS_INLINE void add_pairs(const slc_gemm_few_args *x, const int pairs, const bool odd, uint64_t k, uint64_t column,
                            __mmask32 columns)
{
    const uint64_t rows = x->shape->m, lda = x->shape->lda;
    const uint16_t *a = (const uint16_t *)x->operands->a + k;
    float *sums = sums_of(x, 0, column);
    __m512i b[PAIRS][2];
#pragma GCC unroll 8
    for (int p = 0; p < pairs; p++) load_pair(x, k + 2 * (uint64_t)p, odd, column, columns, b[p]);
    for (uint64_t row = 0; row < rows; row++, a += lda, sums += STEP) {
        __m512 low = k ? _mm512_loadu_ps(sums) : _mm512_setzero_ps();
        __m512 high = k ? _mm512_loadu_ps(sums + LANES) : low;
#pragma GCC unroll 8
        for (int p = 0; p < pairs; p++) {
            int both = 0;
            memcpy(&both, a + 2 * p, odd ? sizeof *a : sizeof both);
            const __m512bh factors = (__m512bh)_mm512_set1_epi32(both);
            low = _mm512_dpbf16_ps(low, factors, (__m512bh)b[p][0]);
            high = _mm512_dpbf16_ps(high, factors, (__m512bh)b[p][1]);
        }
        _mm512_storeu_ps(sums, low), _mm512_storeu_ps(sums + LANES, high);
    }
}

/* Puts the sums of thirty-two columns in order and writes these elements of C. */
PAIRS_INLINE void finish_pairs(const slc_gemm_few_args *x, uint64_t row, uint64_t column, uint64_t left,
                               const float *sums)
{
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    const __m512 low = _mm512_loadu_ps(sums), high = _mm512_loadu_ps(sums + LANES);
    finish_lanes(x, row, column, left, (lanes){{_mm512_permutex2var_ps(low, first, high)}});
    if (left > LANES)
        finish_lanes(x, row, column + LANES, left - LANES, (lanes){{_mm512_permutex2var_ps(low, second, high)}});
}

/* Adds all rows of B from row k on, at most 2 * PAIRS of them. */
PAIRS_INLINE void add_block(const slc_gemm_few_args *x, uint64_t k, uint64_t column, __mmask32 columns)
{
    const uint64_t rows = x->shape->k;
    if (k + 2 * PAIRS <= rows) {
        add_pairs(x, PAIRS, false, k, column, columns);
        prefetch_rows(x, k + 2 * PAIRS, column);
        return;
    }
    for (; k + 2 <= rows; k += 2) add_pairs(x, 1, false, k, column, columns);
    if (k < rows) add_pairs(x, 1, true, k, column, columns);
}

__attribute__((target("avx512bf16"))) void SLC_ISA(slc_gemm_few_pairs)(const void *context, uint32_t part,
                                                                       uint64_t first, uint64_t last)
{
    const slc_gemm_few_args *x = context;
    const slc_gemm_shape *s = x->shape;
    (void)part;
    for (uint64_t block = first; block < last; block += BLOCK) {
        const uint64_t end = block + BLOCK < last ? block + BLOCK : last;
        for (uint64_t k = 0; k < s->k; k += 2 * PAIRS)
            for (uint64_t column = block; column < end; column += STEP)
                add_block(x, k, column, end - column < STEP ? (1u << (end - column)) - 1 : UINT32_MAX);
        for (uint64_t row = 0; row < s->m; row++)
            for (uint64_t column = block; column < end; column += STEP)
                finish_pairs(x, row, column, end - column, sums_of(x, row, column));
    }
}
#endif
