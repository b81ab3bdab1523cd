/* Two rows of logits fit the second-level cache, so three passes over a row read memory once. The passes find the
 * maximum; store exponentials in place of the logits and sum them, while the next row is being fetched; and scale.
 * cross_entropy_test.c covers this file. */
#include "lib/kernels/cross_entropy/cross_entropy.h"

#include "lib/kernels/lanes_math.h"

#include <math.h>

enum { CHAINS = 4, STRIDE = CHAINS * LANES }; /* independent sums hide the latency of additions */

static float row_largest(const float *x, uint64_t count)
{
    lanes most[CHAINS];
    for (int i = 0; i < CHAINS; i++) most[i] = lanes_set(-INFINITY);
    uint64_t at = 0;
    for (; at + STRIDE <= count; at += STRIDE)
#pragma GCC unroll 4
        for (int i = 0; i < CHAINS; i++) most[i] = lanes_max(most[i], lanes_load(x + at + i * LANES));
    for (; at < count; at += LANES) most[0] = lanes_max(most[0], lanes_load_some(x + at, count - at, -INFINITY));
    return lanes_largest(lanes_max(lanes_max(most[0], most[1]), lanes_max(most[2], most[3])));
}

static float row_sum(const float *x, uint64_t count)
{
    lanes sum[CHAINS];
    for (int i = 0; i < CHAINS; i++) sum[i] = lanes_set(0.0f);
    uint64_t at = 0;
    for (; at + STRIDE <= count; at += STRIDE)
#pragma GCC unroll 4
        for (int i = 0; i < CHAINS; i++) sum[i] = lanes_add(sum[i], lanes_load(x + at + i * LANES));
    for (; at < count; at += LANES) sum[0] = lanes_add(sum[0], lanes_load_some(x + at, count - at, 0.0f));
    return lanes_sum(lanes_add(lanes_add(sum[0], sum[1]), lanes_add(sum[2], sum[3])));
}

/* Returns the sum of e^(x - shift), where shift is the largest x; the terms replace x if `keep`. Meanwhile the row at
 * `next` (NULL: none) is fetched. */
LANES_INLINE float row_exponentials(float *x, uint64_t count, float shift, bool keep, const float *next)
{
    lanes sum[CHAINS], base = lanes_set(shift);
    for (int i = 0; i < CHAINS; i++) sum[i] = lanes_set(0.0f);
    uint64_t at = 0;
    for (; at + STRIDE <= count; at += STRIDE)
#pragma GCC unroll 4
        for (int i = 0; i < CHAINS; i++) {
            if (next) __builtin_prefetch(next + at + i * LANES, 0, 2);
            lanes e = lanes_exp(lanes_sub(lanes_load(x + at + i * LANES), base));
            if (keep) lanes_store(x + at + i * LANES, e);
            sum[i] = lanes_add(sum[i], e);
        }
    for (; at < count; at += LANES) {
        lanes e = lanes_exp(lanes_sub(lanes_load_some(x + at, count - at, -INFINITY), base));
        if (keep) lanes_store_some(x + at, count - at, e);
        sum[0] = lanes_add(sum[0], e);
    }
    return lanes_sum(lanes_add(lanes_add(sum[0], sum[1]), lanes_add(sum[2], sum[3])));
}

/* Multiplies by `factor`, takes `less` away and stores each gradient at its own place of the same row. A gradient is no
 * wider than a logit, so none is stored beyond what has been read. */
LANES_INLINE void row_scale(float *x, uint64_t count, float factor, float less, sluice_dtype gradient)
{
    lanes by = lanes_set(factor), off = lanes_set(less);
    uint64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        lanes_store_as(gradient, x, at, lanes_sub(lanes_mul(lanes_load(x + at), by), off));
    if (at < count) {
        lanes last = lanes_sub(lanes_mul(lanes_load_tail(x + at, count - at, 0.0f), by), off);
        lanes_store_some_as(gradient, x, at, count - at, last);
    }
}

LANES_INLINE void row_of(sluice_dtype gradient, const slc_cross_entropy_args *args, uint64_t row, bool more)
{
    const float scale = args->gradient_scale;
    const double smoothing = (double)args->smoothing, even = smoothing / (double)args->classes;
    float *x = (float *)args->logits + row * args->stride, *loss = (float *)args->losses + row;
    const float *next = more ? x + args->stride : NULL;
    int32_t target = args->targets[row];
    if (target < 0) {
        *loss = 0.0f;
        if (scale != 0.0f) memset(x, 0, args->classes * sluice_dtype_bytes(gradient));
        return;
    }
    float hit = x[target], largest = row_largest(x, args->classes);
    double mean = smoothing > 0 ? (double)row_sum(x, args->classes) / (double)args->classes : (double)hit;
    float sum = scale != 0.0f ? row_exponentials(x, args->classes, largest, true, next)
                              : row_exponentials(x, args->classes, largest, false, next);
    double plain = log((double)sum) + ((double)largest - (double)hit);
    *loss = (float)(smoothing > 0 ? plain + smoothing * ((double)hit - mean) : plain);
    if (scale == 0.0f) return;
    double share = (double)x[target] / (double)sum;
    row_scale(x, args->classes, (float)((double)scale / (double)sum), (float)(even * (double)scale), gradient);
    lanes_put_as(gradient, x, (uint64_t)target, (float)((share - (1.0 - smoothing + even)) * (double)scale));
}

void SLC_ISA(slc_cross_entropy_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_cross_entropy_args args = *(const slc_cross_entropy_args *)context;
    for (uint64_t row = first; row < last; row++) LANES_BY_TYPE(args.gradient, row_of, &args, row, row + 1 < last);
}
