/* exp, the logistic function, tanh and the normal distribution on lanes, made only of additions, multiplications,
 * divisions and fma, so that all instruction sets give the same bits. */
#pragma once

#include "lib/kernels/lanes.h"

/* e^x within 2 ulp: x = n ln 2 + r with |r| <= ln 2 / 2 (Cody & Waite's two-part ln 2); e^r is a polynomial of degree 6
 * that meets it at the Chebyshev points (relative error 1.1e-8); times 2^n. It is 0 below -87.7, where the result would
 * be subnormal, and infinite above 88.4; NaN stays NaN. `low` is the amount by which x is too large, below an ulp of x
 * in magnitude: the result is e^(x - low). */
LANES_INLINE lanes_part part_exp_less(lanes_part x, lanes_part low)
{
    x = part_min(part_set(89.0f), part_max(part_set(-88.0f), x)); /* n is from -127, where 2^n is 0, to 128: infinite */
    const lanes_part to_integer = part_set(0x1.8p23f);            /* adding it rounds to an integer, in the low bits */
    lanes_part shifted = part_fma(x, part_set(0x1.715476p0f), to_integer);
    lanes_part n = shifted - to_integer;
    lanes_part r = part_fma(n, part_set(-0x1.62e400p-1f), x);
    r = part_fma(n, part_set(-0x1.7f7d1cp-20f), r) - low;
    lanes_part p = part_set(0x1.6d113cp-10f);
    p = part_fma(p, r, part_set(0x1.120ba2p-7f));
    p = part_fma(p, r, part_set(0x1.55551ap-5f));
    p = part_fma(p, r, part_set(0x1.5554dcp-3f));
    p = part_fma(p, r, part_set(0.5f));
    p = part_fma(p, r, part_set(1.0f));
    p = part_fma(p, r, part_set(1.0f));
    lanes_part power = (lanes_part)(((lanes_words)shifted << 23) + 0x3f800000u);
    return p * power;
}

LANES_INLINE lanes_part part_exp(lanes_part x)
{
    return part_exp_less(x, part_set(0.0f));
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

LANES_INLINE lanes_part part_abs(lanes_part a)
{
    return (lanes_part)((lanes_bits)a & 0x7fffffff);
}

/* Below 0.625 it is an odd polynomial (Cephes, tanhf.c: relative error 4e-8), above that 1 - 2/(e^2|x| + 1), with the
 * sign of x. */
LANES_INLINE lanes_part part_tanh(lanes_part x)
{
    lanes_part size = part_abs(x), square = x * x;
    lanes_part p = part_set(-5.70498872745e-3f);
    p = part_fma(p, square, part_set(2.06390887954e-2f));
    p = part_fma(p, square, part_set(-5.37397155531e-2f));
    p = part_fma(p, square, part_set(1.33314422036e-1f));
    p = part_fma(p, square, part_set(-3.33332819422e-1f));
    lanes_part small = part_fma(p * square, size, size);
    lanes_part large = part_set(1.0f) - part_set(2.0f) / (part_exp(size + size) + part_set(1.0f));
    lanes_part y = part_choose((lanes_bits)(size < part_set(0.625f)), small, large);
    return (lanes_part)((lanes_bits)y | ((lanes_bits)x & INT32_MIN));
}

LANES_INLINE lanes lanes_tanh(lanes a)
{
    LANES_EACH(part_tanh(a.part[i]));
}

/* The normal distribution at x: its function (1 + erf(x / sqrt 2)) / 2, and its density without the factor 1 / sqrt(2
 * pi). With a = |x|, the tail beyond a is e^(-a^2/2) R(a), where R(a) (a + 4) is a polynomial of degree 9 in
 * (a - 4) / (a + 4) that meets it at the Chebyshev points of 0..13.5 (relative error 2.7e-8). The square is used
 * together with its rounding error, so that the far tail keeps its relative accuracy; it is 0 beyond 13.3. */
typedef struct {
    lanes bell, below; /* e^(-x^2/2); probability of a value below x */
} lanes_normal_value;

LANES_INLINE lanes_part part_normal(lanes_part x, lanes_part *bell)
{
    lanes_part size = part_min(part_set(14.0f), part_abs(x)), square = size * size, half = part_set(0.5f);
    lanes_part error = part_fma(size, size, part_set(0.0f) - square);
    *bell = part_exp_less(part_set(-0.5f) * square, half * error);
    lanes_part q = part_set(1.0f) / (size + part_set(4.0f));
    lanes_part t = part_fma(q, part_set(-8.0f), part_set(1.0f));
    lanes_part p = part_set(-0x1.eb4fb4p-14f);
    p = part_fma(p, t, part_set(0x1.b52f6cp-13f));
    p = part_fma(p, t, part_set(0x1.9d2438p-10f));
    p = part_fma(p, t, part_set(-0x1.ce8564p-9f));
    p = part_fma(p, t, part_set(-0x1.ed962ep-8f));
    p = part_fma(p, t, part_set(0x1.eeda4ap-5f));
    p = part_fma(p, t, part_set(-0x1.7dff6ep-3f));
    p = part_fma(p, t, part_set(0x1.8c6d90p-2f));
    p = part_fma(p, t, part_set(-0x1.373e3ap-1f));
    p = part_fma(p, t, part_set(0x1.82b4bcp-1f));
    lanes_part tail = *bell * (p * q);
    return part_choose((lanes_bits)(x > part_set(0.0f)), part_set(1.0f) - tail, tail);
}

LANES_INLINE lanes_normal_value lanes_normal(lanes x)
{
    lanes_normal_value value;
#pragma GCC unroll 4
    for (int i = 0; i < LANES_PARTS; i++) value.below.part[i] = part_normal(x.part[i], &value.bell.part[i]);
    return value;
}
