/* A row stays in the first-level cache, so mean, variance and output are separate passes over it; the part of a row
 * that passes read again is kept in fp32, so that it is converted once. Backward keeps the column sums of its rows in
 * the workspace. Memory sets the pace, so there is no fused multiply-add. layer_norm_test.c covers this file. */
#include "lib/kernels/layer_norm/layer_norm.h"

#include "lib/kernels/host.h"
#include "lib/kernels/lanes.h"

enum { CHAINS = 4, STRIDE = CHAINS * LANES }; /* independent sums hide the latency of additions */

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

/* Runs `step(at, left, chain)` over a row: four chains at a time, then the rest on the first. */
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

enum { ROW_MOST = 4096 }; /* most channels that are kept; longer rows are read from memory again */

static bool streams(sluice_dtype dtype, uint64_t rows, uint64_t channels, const void *out)
{
    return channels % LANES == 0 && slc_host_streams(out, rows * channels * sluice_dtype_bytes(dtype));
}

typedef struct {
    slc_layer_norm_forward_args a;
    bool stream_sum, stream_y; /* they are stored past the cache */
} forward_args;

/* With a residual, stores the sum, rounded. Copies the row that is normalised to `row` unless that is NULL. Returns its
 * total. */
LANES_INLINE float row_add(sluice_dtype dtype, const forward_args *args, uint64_t base, float *row)
{
    const slc_layer_norm_forward_args a = args->a;
    const bool stream = args->stream_sum;
    sums s = sums_zero();
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes v = lanes_load_some_as(dtype, a.x, base + (at), left, 0.0f);                                             \
        if (a.residual) {                                                                                              \
            v = lanes_add(v, lanes_load_some_as(dtype, a.residual, base + (at), left, 0.0f));                          \
            if (dtype == SLUICE_BF16) v = lanes_round_bf16(v);                                                         \
            lanes_stream_some_as(dtype, a.sum, base + (at), left, v, stream);                                          \
        }                                                                                                              \
        if (row) lanes_store_some(row + (at), left, v);                                                                \
        s.chain[which] = lanes_add(s.chain[which], v);                                                                 \
    } while (0)
    OVER_ROW(a.channels, STEP);
#undef STEP
    return sums_join(&s);
}

LANES_INLINE float row_squares(sluice_dtype dtype, uint64_t count, const void *x, uint64_t base, float mean)
{
    sums s = sums_zero();
    lanes m = lanes_set(mean);
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes d = lanes_sub(lanes_load_some_as(dtype, x, base + (at), left, mean), m);                                 \
        s.chain[which] = lanes_add(s.chain[which], lanes_mul(d, d));                                                   \
    } while (0)
    OVER_ROW(count, STEP);
#undef STEP
    return sums_join(&s);
}

typedef struct {
    const void *x; /* what is normalised lies at x[from], and goes to y[base] */
    uint64_t from, base;
    float mean, rstd;
} row_out;

LANES_INLINE void row_normalise(sluice_dtype in, sluice_dtype dtype, const forward_args *args, row_out out)
{
    const slc_layer_norm_forward_args a = args->a;
    const bool stream = args->stream_y;
    const uint64_t from = out.from, base = out.base;
    const void *x = out.x;
    lanes m = lanes_set(out.mean), r = lanes_set(out.rstd);
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes hat = lanes_mul(lanes_sub(lanes_load_some_as(in, x, from + (at), left, 0.0f), m), r);                    \
        lanes scaled = lanes_mul(hat, lanes_load_some_as(dtype, a.gamma, at, left, 0.0f));                             \
        lanes y = lanes_add(scaled, lanes_load_some_as(dtype, a.beta, at, left, 0.0f));                                \
        lanes_stream_some_as(dtype, a.y, base + (at), left, y, stream);                                                \
    } while (0)
    OVER_ROW(a.channels, STEP);
#undef STEP
}

/* Normalises row number `index`. `in`: the type that the later passes read, from `row` or from memory. */
LANES_INLINE void forward_row(sluice_dtype in, sluice_dtype dtype, const forward_args *args, uint64_t index, float *row)
{
    const slc_layer_norm_forward_args *a = &args->a;
    const uint64_t channels = a->channels, base = index * channels;
    float mean = row_add(dtype, args, base, row) / (float)channels;
    row_out out = {.x = row ? row : a->residual ? a->sum : a->x, .from = row ? 0 : base, .base = base, .mean = mean};
    float squares = row_squares(in, channels, out.x, out.from, mean);
    out.rstd = 1.0f / __builtin_sqrtf(squares / (float)channels + (float)a->epsilon);
    row_normalise(in, dtype, args, out);
    ((float *)a->mean)[index] = mean;
    ((float *)a->rstd)[index] = out.rstd;
}

LANES_INLINE void forward(sluice_dtype dtype, const forward_args *args, uint64_t first, uint64_t last)
{
    float row[ROW_MOST];
    if (args->a.channels <= ROW_MOST)
        for (uint64_t index = first; index < last; index++) forward_row(SLUICE_FP32, dtype, args, index, row);
    else
        for (uint64_t index = first; index < last; index++) forward_row(dtype, dtype, args, index, NULL);
    if (args->stream_sum || args->stream_y) lanes_stream_end();
}

void SLC_ISA(slc_layer_norm_forward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_layer_norm_forward_args *a = context;
    const bool sum_apart = a->residual && a->sum != a->x && a->sum != a->residual;
    const bool y_apart = a->y != a->x && a->y != a->residual;
    const forward_args args = {.a = *a,
                               .stream_sum = sum_apart && streams(a->dtype, a->rows, a->channels, a->sum),
                               .stream_y = y_apart && streams(a->dtype, a->rows, a->channels, a->y)};
    LANES_BY_TYPE(a->dtype, forward, &args, first, last);
}

typedef struct {
    const slc_layer_norm_backward_args *args;
    uint64_t base;
    float mean, rstd;
    bool stream; /* dx is stored past the cache */
} row_in;

/* Adds the row to the column sums; gives the means over the row of dy gamma (plain) and of dy gamma xhat (hat). */
LANES_INLINE void row_means(sluice_dtype dtype, const row_in *in, float *dgamma, float *dbeta, float *plain, float *hat)
{
    const slc_layer_norm_backward_args *args = in->args;
    const uint64_t base = in->base, channels = args->channels;
    const void *dy = args->dy, *x = args->x, *gamma = args->gamma;
    sums a = sums_zero(), b = sums_zero();
    lanes m = lanes_set(in->mean), r = lanes_set(in->rstd);
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes d = lanes_load_some_as(dtype, dy, base + (at), left, 0.0f);                                              \
        lanes h = lanes_mul(lanes_sub(lanes_load_some_as(dtype, x, base + (at), left, 0.0f), m), r);                   \
        lanes dh = lanes_mul(d, h), g = lanes_load_some_as(dtype, gamma, at, left, 0.0f);                              \
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
LANES_INLINE void row_dx(sluice_dtype dtype, const row_in *in, float plain, float hat)
{
    const slc_layer_norm_backward_args args = *in->args;
    const uint64_t base = in->base;
    const bool stream = in->stream;
    lanes m = lanes_set(in->mean), r = lanes_set(in->rstd), c1 = lanes_set(plain), c2 = lanes_set(hat);
#define STEP(at, left, which)                                                                                          \
    do {                                                                                                               \
        lanes h = lanes_mul(lanes_sub(lanes_load_some_as(dtype, args.x, base + (at), left, 0.0f), m), r);              \
        lanes dg = lanes_mul(lanes_load_some_as(dtype, args.dy, base + (at), left, 0.0f),                              \
                             lanes_load_some_as(dtype, args.gamma, at, left, 0.0f));                                   \
        lanes v = lanes_mul(r, lanes_sub(lanes_sub(dg, c1), lanes_mul(h, c2)));                                        \
        if (args.dx_add) v = lanes_add(v, lanes_load_some_as(dtype, args.dx_add, base + (at), left, 0.0f));            \
        lanes_stream_some_as(dtype, args.dx, base + (at), left, v, stream);                                            \
    } while (0)
    OVER_ROW(args.channels, STEP);
#undef STEP
}

LANES_INLINE void backward(sluice_dtype dtype, const slc_layer_norm_backward_args *args, uint32_t part, uint64_t first,
                           uint64_t last)
{
    const uint64_t channels = args->channels;
    const float *mean = args->mean, *rstd = args->rstd;
    const bool apart = args->dx != args->dx_add && args->dx != args->dy && args->dx != args->x;
    const bool stream = apart && streams(dtype, args->rows, channels, args->dx);
    float *dgamma = (float *)args->workspace + (uint64_t)part * 2 * channels, *dbeta = dgamma + channels;
    memset(dgamma, 0, 2 * channels * sizeof *dgamma);
    for (uint64_t row = first; row < last; row++) {
        const row_in in = {args, row * channels, mean[row], rstd[row], stream};
        float plain, hat;
        row_means(dtype, &in, dgamma, dbeta, &plain, &hat);
        row_dx(dtype, &in, plain, hat);
    }
    if (stream) lanes_stream_end();
}

void SLC_ISA(slc_layer_norm_backward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    const slc_layer_norm_backward_args *args = context;
    LANES_BY_TYPE(args->dtype, backward, args, part, first, last);
}
