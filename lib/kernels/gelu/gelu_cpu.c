/* (1 + tanh u) / 2 is the logistic function of 2u, which has no cancellation where x is very negative:
 * y = x s(2u), dy/dx = s + x s (1 - s) 2u'. */
#include "lib/kernels/gelu/gelu_cpu.h"

#include "lib/kernels/lanes_math.h"

static const float two_root = 1.5957691216057308f;       /* 2 sqrt(2/pi) */
static const float two_root_cubic = 0.0713548162726002f; /* 2 sqrt(2/pi) 0.044715 */

LANES_INLINE lanes forward(lanes x)
{
    lanes square = lanes_mul(x, x);
    lanes u2 = lanes_mul(x, lanes_fma(lanes_set(two_root_cubic), square, lanes_set(two_root)));
    return lanes_mul(x, lanes_logistic(u2));
}

LANES_INLINE lanes backward(lanes x, lanes dy)
{
    lanes square = lanes_mul(x, x);
    lanes u2 = lanes_mul(x, lanes_fma(lanes_set(two_root_cubic), square, lanes_set(two_root)));
    lanes slope = lanes_fma(lanes_set(3 * two_root_cubic), square, lanes_set(two_root));
    lanes s = lanes_logistic(u2);
    lanes bend = lanes_mul(lanes_mul(s, lanes_sub(lanes_set(1.0f), s)), slope);
    return lanes_mul(dy, lanes_fma(x, bend, s));
}

LANES_INLINE void some(const slc_gelu_args *args, uint64_t at, uint64_t left)
{
    lanes x = lanes_load_some(args->x + at, left, 0.0f);
    lanes y = args->dy ? backward(x, lanes_load_some(args->dy + at, left, 0.0f)) : forward(x);
    lanes_store_some(args->out + at, left, y);
}

void SLC_ISA(slc_gelu_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_gelu_args args = *(const slc_gelu_args *)context;
    uint64_t at = first;
    if (args.dy)
        for (; at + LANES <= last; at += LANES)
            lanes_store(args.out + at, backward(lanes_load(args.x + at), lanes_load(args.dy + at)));
    else
        for (; at + LANES <= last; at += LANES) lanes_store(args.out + at, forward(lanes_load(args.x + at)));
    if (at < last) some(&args, at, last - at);
}
