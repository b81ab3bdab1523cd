/* exp, the logistic function, tanh and the normal distribution, operation by operation as lanes_math.h has them, so
 * that the GPU gives the host's bits. The sources of the formulas are named there. */
#pragma once

#include "lib/kernels/gpu.cuh"

/* e^(x - low) */
static __device__ __forceinline__ float gpu_exp_less(float x, float low)
{
    x = -88.0f > x ? -88.0f : x; /* NaN stays NaN */
    x = 89.0f < x ? 89.0f : x;
    const float to_integer = 0x1.8p23f, shifted = fmaf(x, 0x1.715476p0f, to_integer), n = shifted - to_integer;
    float r = fmaf(n, -0x1.62e400p-1f, x);
    r = fmaf(n, -0x1.7f7d1cp-20f, r) - low;
    float p = fmaf(0x1.6d113cp-10f, r, 0x1.120ba2p-7f);
    p = fmaf(p, r, 0x1.55551ap-5f);
    p = fmaf(p, r, 0x1.5554dcp-3f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    return p * __uint_as_float((__float_as_uint(shifted) << 23) + 0x3f800000u);
}

static __device__ __forceinline__ float gpu_exp(float x)
{
    return gpu_exp_less(x, 0.0f);
}

static __device__ __forceinline__ float gpu_logistic(float x)
{
    return 1.0f / (1.0f + gpu_exp(0.0f - x));
}

static __device__ __forceinline__ float gpu_size(float x)
{
    return __uint_as_float(__float_as_uint(x) & 0x7fffffffu);
}

static __device__ __forceinline__ float gpu_tanh(float x)
{
    const float size = gpu_size(x), square = x * x;
    float p = fmaf(-5.70498872745e-3f, square, 2.06390887954e-2f);
    p = fmaf(p, square, -5.37397155531e-2f);
    p = fmaf(p, square, 1.33314422036e-1f);
    p = fmaf(p, square, -3.33332819422e-1f);
    const float y = size < 0.625f ? fmaf(p * square, size, size) : 1.0f - 2.0f / (gpu_exp(size + size) + 1.0f);
    return __uint_as_float(__float_as_uint(y) | (__float_as_uint(x) & 0x80000000u));
}

/* Returns the probability of a value below x; *bell is e^(-x^2/2). */
static __device__ __forceinline__ float gpu_normal(float x, float *bell)
{
    float size = gpu_size(x);
    size = 14.0f < size ? 14.0f : size;
    const float square = size * size, error = fmaf(size, size, 0.0f - square);
    *bell = gpu_exp_less(-0.5f * square, 0.5f * error);
    const float q = 1.0f / (size + 4.0f), t = fmaf(q, -8.0f, 1.0f);
    float p = fmaf(-0x1.eb4fb4p-14f, t, 0x1.b52f6cp-13f);
    p = fmaf(p, t, 0x1.9d2438p-10f);
    p = fmaf(p, t, -0x1.ce8564p-9f);
    p = fmaf(p, t, -0x1.ed962ep-8f);
    p = fmaf(p, t, 0x1.eeda4ap-5f);
    p = fmaf(p, t, -0x1.7dff6ep-3f);
    p = fmaf(p, t, 0x1.8c6d90p-2f);
    p = fmaf(p, t, -0x1.373e3ap-1f);
    p = fmaf(p, t, 0x1.82b4bcp-1f);
    const float tail = *bell * (p * q);
    return x > 0.0f ? 1.0f - tail : tail;
}
