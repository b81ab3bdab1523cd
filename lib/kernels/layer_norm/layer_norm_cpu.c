/* A row stays in the first-level cache, so mean, variance and output are passes of their own over it. Backward keeps
 * the column sums of its rows in the workspace. Memory sets the pace: no fused multiply-add. */
#include "lib/kernels/layer_norm/layer_norm_cpu.h"

#include "lib/kernels/lanes.h"

enum { CHAINS = 4, STRIDE = CHAINS * LANES }; /* independent sums, for the latency of additions */

typedef struct {
    lanes chain[CHAINS];
} sums;

LANES_INLINE sums sums_zero(void)
{
    sums s;
    for (int i = 0; i < CHAINS; i++) s.chain[i] = lanes_set(0.0f);
    return s;
}

LANES_INLINE float sums_join(const sums *s)
{
    return lanes_sum(lanes_add(lanes_add(s->chain[0], s->chain[1]), lanes_add(s->chain[2], s->chain[3])));
}

/* Runs `step(at, left, chain)` over a row: four chains at a time, then what is left on the first. */
#define OVER_ROW(count, step)                                                                                          \
    do {                                                                                                               \
        uint64_t at_ = 0;                                                                                              \
        for (; at_ + STRIDE <= (count); at_ += STRIDE) {                                                               \
            _Pragma("GCC unroll 4") for (int chain_ = 0; chain_ < CHAINS; chain_++)                                    \
                step(at_ + (uint64_t)chain_ * LANES, (uint64_t)LANES, chain_);                                         \
        }                                                                                                              \
        for (; at_ + LANES <= (count); at_ += LANES) step(at_, (uint64_t)LANES, 0);                                    \
        if (at_ < (count)) step(at_, (count)-at_, 0);                                                                  \
    } while (0)

LANES_INLINE float row_add(uint64_t count, const float *x, const float *residual, float *out)
{
    sums s = sums_zero();
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes v = lanes_load_some(x + (at), left, 0.0f);                                                               \
        if (residual) {                                                                                                \
            v = lanes_add(v, lanes_load_some(residual + (at), left, 0.0f));                                            \
            lanes_store_some(out + (at), left, v);                                                                     \
        }                                                                                                              \
        s.chain[which] = lanes_add(s.chain[which], v);                                                                 \
    } while (0)
    OVER_ROW(count, STEP);
#undef STEP
    return sums_join(&s);
}

LANES_INLINE float row_squares(uint64_t count, const float *x, float mean)
{
    sums s = sums_zero();
    lanes m = lanes_set(mean);
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes d = lanes_sub(lanes_load_some(x + (at), left, mean), m);                                                 \
        s.chain[which] = lanes_add(s.chain[which], lanes_mul(d, d));                                                   \
    } while (0)
    OVER_ROW(count, STEP);
#undef STEP
    return sums_join(&s);
}

LANES_INLINE void row_normalise(const slc_layer_norm_forward_args *args, const float *x, float mean, float rstd,
                                float *y)
{
    lanes m = lanes_set(mean), r = lanes_set(rstd);
    const float *gamma = args->gamma, *beta = args->beta;
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes hat = lanes_mul(lanes_sub(lanes_load_some(x + (at), left, 0.0f), m), r);                                 \
        lanes scaled = lanes_mul(hat, lanes_load_some(gamma + (at), left, 0.0f));                                      \
        lanes_store_some(y + (at), left, lanes_add(scaled, lanes_load_some(beta + (at), left, 0.0f)));                 \
    } while (0)
    OVER_ROW(args->channels, STEP);
#undef STEP
}

void SLC_ISA(slc_layer_norm_forward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_layer_norm_forward_args args = *(const slc_layer_norm_forward_args *)context;
    const uint64_t channels = args.channels;
    for (uint64_t row = first; row < last; row++) {
        const float *x = args.x + row * channels;
        float total;
        if (args.residual) {
            float *sum = args.sum + row * channels;
            total = row_add(channels, x, args.residual + row * channels, sum);
            x = sum;
        } else {
            total = row_add(channels, x, NULL, NULL);
        }
        float mean = total / (float)channels;
        float rstd = 1.0f / __builtin_sqrtf(row_squares(channels, x, mean) / (float)channels + args.epsilon);
        row_normalise(&args, x, mean, rstd, args.y + row * channels);
        args.mean[row] = mean;
        args.rstd[row] = rstd;
    }
}

typedef struct {
    const float *dy, *x, *gamma;
    float mean, rstd;
} row_in;

/* Adds the row to the column sums; gives the means over the row of dy gamma and of dy gamma xhat. */
LANES_INLINE void row_means(uint64_t channels, const row_in *in, float *dgamma, float *dbeta, float *plain, float *hat)
{
    sums a = sums_zero(), b = sums_zero();
    lanes m = lanes_set(in->mean), r = lanes_set(in->rstd);
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes d = lanes_load_some(in->dy + (at), left, 0.0f);                                                          \
        lanes h = lanes_mul(lanes_sub(lanes_load_some(in->x + (at), left, 0.0f), m), r);                               \
        lanes dh = lanes_mul(d, h), g = lanes_load_some(in->gamma + (at), left, 0.0f);                                 \
        lanes_store_some(dgamma + (at), left, lanes_add(lanes_load_some(dgamma + (at), left, 0.0f), dh));              \
        lanes_store_some(dbeta + (at), left, lanes_add(lanes_load_some(dbeta + (at), left, 0.0f), d));                 \
        a.chain[which] = lanes_add(a.chain[which], lanes_mul(d, g));                                                   \
        b.chain[which] = lanes_add(b.chain[which], lanes_mul(dh, g));                                                  \
    } while (0)
    OVER_ROW(channels, STEP);
#undef STEP
    *plain = sums_join(&a) / (float)channels;
    *hat = sums_join(&b) / (float)channels;
}

/* dx = rstd (dy gamma - plain - xhat hat) + add */
LANES_INLINE void row_dx(uint64_t channels, const row_in *in, float plain, float hat, const float *add, float *dx)
{
    lanes m = lanes_set(in->mean), r = lanes_set(in->rstd), c1 = lanes_set(plain), c2 = lanes_set(hat);
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes h = lanes_mul(lanes_sub(lanes_load_some(in->x + (at), left, 0.0f), m), r);                               \
        lanes dg =                                                                                                     \
            lanes_mul(lanes_load_some(in->dy + (at), left, 0.0f), lanes_load_some(in->gamma + (at), left, 0.0f));      \
        lanes v = lanes_mul(r, lanes_sub(lanes_sub(dg, c1), lanes_mul(h, c2)));                                        \
        if (add) v = lanes_add(v, lanes_load_some(add + (at), left, 0.0f));                                            \
        lanes_store_some(dx + (at), left, v);                                                                          \
    } while (0)
    OVER_ROW(channels, STEP);
#undef STEP
}

void SLC_ISA(slc_layer_norm_backward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    const slc_layer_norm_backward_args args = *(const slc_layer_norm_backward_args *)context;
    const uint64_t channels = args.channels;
    float *dgamma = args.partials + (uint64_t)part * 2 * channels, *dbeta = dgamma + channels;
    memset(dgamma, 0, 2 * channels * sizeof *dgamma);
    for (uint64_t row = first; row < last; row++) {
        const row_in in = {args.dy + row * channels, args.x + row * channels, args.gamma, args.mean[row],
                           args.rstd[row]};
        float plain, hat, *dx = args.dx_out + row * channels;
        row_means(channels, &in, dgamma, dbeta, &plain, &hat);
        if (args.dx_add)
            row_dx(channels, &in, plain, hat, args.dx_add + row * channels, dx);
        else
            row_dx(channels, &in, plain, hat, NULL, dx);
    }
}
