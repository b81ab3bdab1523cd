/* (1 + tanh u) / 2 is the logistic function of 2u, which has no cancellation if x is very negative: y = x s(2u), dy/dx
 * = s + x s (1 - s) 2u'. With erf: y = x P(x), dy/dx = P + x p, where p is the density.
 * gelu_test.c covers this file. */
#include "lib/kernels/gelu/gelu.h"

#include "lib/kernels/host.h"
#include "lib/kernels/lanes_map.h"
#include "lib/kernels/lanes_math.h"

static const float two_root = 1.5957691216057308f;       /* 2 sqrt(2/pi) */
static const float two_root_cubic = 0.0713548162726002f; /* 2 sqrt(2/pi) 0.044715 */
static const float one_root = 0.3989422804014327f;       /* 1 / sqrt(2 pi) */

LANES_INLINE lanes tanh_form(lanes x, lanes unused)
{
    (void)unused;
    lanes square = lanes_mul(x, x);
    lanes u2 = lanes_mul(x, lanes_fma(lanes_set(two_root_cubic), square, lanes_set(two_root)));
    return lanes_mul(x, lanes_logistic(u2));
}

LANES_INLINE lanes tanh_form_backward(lanes x, lanes dy)
{
    lanes square = lanes_mul(x, x);
    lanes u2 = lanes_mul(x, lanes_fma(lanes_set(two_root_cubic), square, lanes_set(two_root)));
    lanes slope = lanes_fma(lanes_set(3 * two_root_cubic), square, lanes_set(two_root));
    lanes s = lanes_logistic(u2);
    lanes bend = lanes_mul(lanes_mul(s, lanes_sub(lanes_set(1.0f), s)), slope);
    return lanes_mul(dy, lanes_fma(x, bend, s));
}

LANES_INLINE lanes erf_form(lanes x, lanes unused)
{
    (void)unused;
    return lanes_mul(x, lanes_normal(x).below);
}

LANES_INLINE lanes erf_form_backward(lanes x, lanes dy)
{
    lanes_normal_value normal = lanes_normal(x);
    return lanes_mul(dy, lanes_fma(lanes_mul(x, lanes_set(one_root)), normal.bell, normal.below));
}

LANES_INLINE lanes plain_tanh(lanes x, lanes unused)
{
    (void)unused;
    return lanes_tanh(x);
}

LANES_INLINE lanes plain_tanh_backward(lanes y, lanes dy)
{
    return lanes_mul(dy, lanes_fma(lanes_sub(lanes_set(0.0f), y), y, lanes_set(1.0f)));
}

/* Finds what the table has of numbers in bf16, which were widened. */
LANES_INLINE lanes look_up(const float *table, lanes x)
{
    lanes found;
#pragma GCC unroll 4
    for (int i = 0; i < LANES_PARTS; i++) {
        const lanes_words places = (lanes_words)x.part[i] >> 16;
#if defined(__AVX512F__)
        found.part[i] = _mm512_i32gather_ps((__m512i)places, table, sizeof *table);
#elif defined(__AVX2__) && defined(__FMA__)
        found.part[i] = _mm256_i32gather_ps(table, (__m256i)places, sizeof *table);
#else
        float each[LANES_WIDTH];
        for (int k = 0; k < LANES_WIDTH; k++) each[k] = table[places[k]];
        memcpy(&found.part[i], each, sizeof each);
#endif
    }
    return found;
}

LANES_INLINE lanes with(lanes found, lanes dy, bool backward)
{
    return backward ? lanes_mul(dy, found) : found;
}

LANES_INLINE void by_table(const slc_gelu_args *args, const bool backward, bool stream, uint64_t first, uint64_t last)
{
    const uint16_t *x = args->x, *dy = args->dy;
    uint16_t *out = args->out;
    uint64_t at = first;
    stream = stream && first % (2 * LANES) == 0;
    for (; at + 2 * LANES <= last; at += 2 * LANES) {
        lanes a[2], b[2];
        lanes_load_pair_bf16(x + at, &a[0], &a[1]);
        lanes_load_pair_bf16(dy + at, &b[0], &b[1]);
        lanes_store_pair_bf16(out + at, with(look_up(args->table, a[0]), b[0], backward),
                              with(look_up(args->table, a[1]), b[1], backward), stream);
    }
    for (; at < last; at += LANES)
        lanes_store_some_as(SLUICE_BF16, out, at, last - at,
                            with(look_up(args->table, lanes_load_some_as(SLUICE_BF16, x, at, last - at, 0.0f)),
                                 lanes_load_some_as(SLUICE_BF16, dy, at, last - at, 0.0f), backward));
    if (stream) lanes_stream_end();
}

LANES_INLINE void by_function(sluice_dtype dtype, const slc_gelu_args *args, uint64_t first, uint64_t last)
{
    const bool in_place = args->out == args->x || args->out == args->dy;
    const bool stream = !in_place && slc_host_streams(args->out, args->count * sluice_dtype_bytes(dtype));
    const lanes_map_args map = {args->x, args->dy, args->out, stream};
    if (dtype == SLUICE_BF16 && args->table) {
        if (args->function == SLC_GELU_ERF_BACKWARD)
            by_table(args, true, stream, first, last);
        else
            by_table(args, false, stream, first, last);
        return;
    }
    switch (args->function) {
    case SLC_GELU_TANH_FORWARD: lanes_map(dtype, dtype, &map, first, last, tanh_form); break;
    case SLC_GELU_TANH_BACKWARD: lanes_map(dtype, dtype, &map, first, last, tanh_form_backward); break;
    case SLC_GELU_ERF_FORWARD: lanes_map(dtype, dtype, &map, first, last, erf_form); break;
    case SLC_GELU_ERF_BACKWARD: lanes_map(dtype, dtype, &map, first, last, erf_form_backward); break;
    case SLC_TANH_FORWARD: lanes_map(dtype, dtype, &map, first, last, plain_tanh); break;
    case SLC_TANH_BACKWARD: lanes_map(dtype, dtype, &map, first, last, plain_tanh_backward); break;
    }
}

LANES_KERNEL(slc_gelu_range, slc_gelu_args, dtype, by_function)
