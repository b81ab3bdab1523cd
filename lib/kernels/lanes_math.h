/* exp and the logistic function on lanes, from additions, multiplications and fma only: the same bits everywhere. */
#ifndef SLC_KERNEL_LANES_MATH_H
#define SLC_KERNEL_LANES_MATH_H

#include "lib/kernels/lanes.h"

/* e^x within 2 ulp: x = n ln 2 + r with |r| <= ln 2 / 2 (Cody & Waite's two-part ln 2); e^r is a polynomial of degree 6
 * that meets it at the Chebyshev points (relative error 1.1e-8); times 2^n. 0 below -87, where the result would be
 * subnormal, infinite above 88; NaN stays NaN. */
LANES_INLINE lanes_part part_exp(lanes_part x)
{
    const lanes_part to_integer = part_set(0x1.8p23f); /* adding it rounds to an integer, in the low bits */
    lanes_part shifted = part_fma(x, part_set(0x1.715476p0f), to_integer);
    lanes_part n = shifted - to_integer;
    lanes_part r = part_fma(n, part_set(-0x1.62e400p-1f), x);
    r = part_fma(n, part_set(-0x1.7f7d1cp-20f), r);
    lanes_part p = part_set(0x1.6d113cp-10f);
    p = part_fma(p, r, part_set(0x1.120ba2p-7f));
    p = part_fma(p, r, part_set(0x1.55551ap-5f));
    p = part_fma(p, r, part_set(0x1.5554dcp-3f));
    p = part_fma(p, r, part_set(0.5f));
    p = part_fma(p, r, part_set(1.0f));
    p = part_fma(p, r, part_set(1.0f));
    lanes_part power = (lanes_part)(((lanes_words)shifted << 23) + 0x3f800000u);
    lanes_part y = p * power;
    y = part_choose((lanes_bits)(x < part_set(-87.0f)), part_set(0.0f), y);
    return part_choose((lanes_bits)(x > part_set(88.0f)), part_set(__builtin_inff()), y);
}

LANES_INLINE lanes lanes_exp(lanes a)
{
    LANES_EACH(part_exp(a.part[i]));
}

/* 1 / (1 + e^-x) */
LANES_INLINE lanes lanes_logistic(lanes x)
{
    lanes one = lanes_set(1.0f);
    return lanes_div(one, lanes_add(one, lanes_exp(lanes_sub(lanes_set(0.0f), x))));
}

#endif
