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

LANES_INLINE void by_function(sluice_dtype dtype, const slc_gelu_args *args, uint64_t first, uint64_t last)
{
    const bool in_place = args->out == args->x || args->out == args->dy;
    const bool stream = !in_place && slc_host_streams(args->out, args->count * sluice_dtype_bytes(dtype));
    const lanes_map_args map = {args->x, args->dy, args->out, stream};
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
