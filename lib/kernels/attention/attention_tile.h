/* The building blocks of attention: products of small matrices held in registers, and the transposition that makes keys
 * neighbours in memory. Every sum runs over its depth in order, one fma at a time, so no way of cutting a product
 * changes a bit. */
#pragma once

#include "lib/kernels/lanes_math.h"

#include <stdbool.h>

/* A tile has as many sums as registers can hold: 8 x 2 of 32 registers, or 4 x 1 (pairs of registers) of 16. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 8, TILE_LANES = 2 };
#else
enum { TILE_ROWS = 4, TILE_LANES = 1 };
#endif
enum { GROUP = 8 }; /* most rows in one call of tile_product */

/* A matrix whose element (i, k) is at[i * row + k * step]: rows as stored, or columns of a transposed matrix. */
typedef struct {
    const float *at;
    uint64_t row, step;
} tile_left;

typedef struct {
    float *at;
    uint64_t row;
} tile_out;

/* C[rows][width lanes] (+)= A B over `depth`. Rows of B are b_row apart. */
LANES_INLINE void tile_block(const int rows, const int width, uint64_t depth, tile_left a, const float *b,
                             uint64_t b_row, tile_out c, bool add)
{
    lanes sum[TILE_ROWS][TILE_LANES];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < width; j++)
            sum[i][j] = add ? lanes_load(c.at + (uint64_t)i * c.row + j * LANES) : lanes_set(0.0f);
    for (uint64_t k = 0; k < depth; k++) {
        lanes right[TILE_LANES];
#pragma GCC unroll 2
        for (int j = 0; j < width; j++) right[j] = lanes_load(b + k * b_row + j * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            lanes left = lanes_set(a.at[(uint64_t)i * a.row + k * a.step]);
#pragma GCC unroll 2
            for (int j = 0; j < width; j++) sum[i][j] = lanes_fma(left, right[j], sum[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < width; j++) lanes_store(c.at + (uint64_t)i * c.row + j * LANES, sum[i][j]);
}

/* Computes one strip of columns, `width` a constant: TILE_ROWS rows at a time, then half as many, and so on. */
LANES_INLINE void tile_strip(const int width, uint64_t rows, uint64_t depth, tile_left a, const float *b,
                             uint64_t b_row, tile_out c, bool add)
{
    for (uint64_t i = 0; i < rows;) {
        tile_left left = {a.at + i * a.row, a.row, a.step};
        tile_out out = {c.at + i * c.row, c.row};
        uint64_t rest = rows - i;
        if (rest >= TILE_ROWS) {
            tile_block(TILE_ROWS, width, depth, left, b, b_row, out, add);
            i += TILE_ROWS;
        } else if (TILE_ROWS > 4 && rest >= 4) {
            tile_block(4, width, depth, left, b, b_row, out, add);
            i += 4;
        } else if (rest >= 2) {
            tile_block(2, width, depth, left, b, b_row, out, add);
            i += 2;
        } else {
            tile_block(1, width, depth, left, b, b_row, out, add);
            i += 1;
        }
    }
}

/* C[rows][width lanes] (+)= A B. */
static __attribute__((noinline, unused)) void tile_product(uint64_t rows, uint64_t width, uint64_t depth, tile_left a,
                                                           const float *b, uint64_t b_row, tile_out c, bool add)
{
    uint64_t j = 0;
    for (; j + TILE_LANES <= width; j += TILE_LANES)
        tile_strip(TILE_LANES, rows, depth, a, b + j * LANES, b_row, (tile_out){c.at + j * LANES, c.row}, add);
    for (; j < width; j++)
        tile_strip(1, rows, depth, a, b + j * LANES, b_row, (tile_out){c.at + j * LANES, c.row}, add);
}

/* out[d][r] = in[r][d] for r < rows, and zero for r from there up to the next multiple of LANES. */
static __attribute__((unused)) void tile_transpose(uint64_t rows, uint64_t columns, const float *in, uint64_t in_row,
                                                   float *out, uint64_t out_row)
{
    uint64_t padded = (rows + LANES - 1) / LANES * LANES, r = 0;
#if defined(__x86_64__)
    for (; r + 4 <= rows; r += 4) {
        const float *from = in + r * in_row;
        uint64_t d = 0;
        for (; d + 4 <= columns; d += 4) {
            __m128 a = _mm_loadu_ps(from + d), b = _mm_loadu_ps(from + in_row + d),
                   c = _mm_loadu_ps(from + 2 * in_row + d), e = _mm_loadu_ps(from + 3 * in_row + d);
            _MM_TRANSPOSE4_PS(a, b, c, e);
            float *to = out + d * out_row + r;
            _mm_storeu_ps(to, a), _mm_storeu_ps(to + out_row, b);
            _mm_storeu_ps(to + 2 * out_row, c), _mm_storeu_ps(to + 3 * out_row, e);
        }
        for (; d < columns; d++)
            for (uint64_t i = 0; i < 4; i++) out[d * out_row + r + i] = from[i * in_row + d];
    }
#endif
    for (; r < padded; r++)
        for (uint64_t d = 0; d < columns; d++) out[d * out_row + r] = r < rows ? in[r * in_row + d] : 0.0f;
}

/* out[r][d] = in[r][d] * scale in fp32, and zero for d up to the next multiple of LANES, which is the distance between
 * rows of `out`. `in` begins at element `at`. */
LANES_INLINE void tile_pack_as(const sluice_dtype dtype, uint64_t rows, uint64_t columns, const void *in, uint64_t at,
                               uint64_t in_row, float scale, float *out)
{
    const lanes factor = lanes_set(scale);
    for (uint64_t r = 0; r < rows; r++, at += in_row)
        for (uint64_t d = 0; d < columns; d += LANES, out += LANES)
            lanes_store(out, lanes_mul(lanes_load_some_as(dtype, in, at + d, columns - d, 0.0f), factor));
}

static __attribute__((unused)) void tile_pack(sluice_dtype dtype, uint64_t rows, uint64_t columns, const void *in,
                                              uint64_t at, uint64_t in_row, float scale, float *out)
{
    if (dtype == SLUICE_BF16)
        tile_pack_as(SLUICE_BF16, rows, columns, in, at, in_row, scale, out);
    else
        tile_pack_as(SLUICE_FP32, rows, columns, in, at, in_row, scale, out);
}

/* Does the reverse: out[r][d] = in[r][d] * scale, rounded to `dtype`. */
LANES_INLINE void tile_unpack_as(const sluice_dtype dtype, uint64_t rows, uint64_t columns, const float *in,
                                 float scale, void *out, uint64_t at, uint64_t out_row)
{
    const lanes factor = lanes_set(scale);
    for (uint64_t r = 0; r < rows; r++, at += out_row)
        for (uint64_t d = 0; d < columns; d += LANES, in += LANES)
            lanes_store_some_as(dtype, out, at + d, columns - d, lanes_mul(lanes_load(in), factor));
}

static __attribute__((unused)) void tile_unpack(sluice_dtype dtype, uint64_t rows, uint64_t columns, const float *in,
                                                float scale, void *out, uint64_t at, uint64_t out_row)
{
    if (dtype == SLUICE_BF16)
        tile_unpack_as(SLUICE_BF16, rows, columns, in, scale, out, at, out_row);
    else
        tile_unpack_as(SLUICE_FP32, rows, columns, in, scale, out, at, out_row);
}
