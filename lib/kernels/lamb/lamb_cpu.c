/* LAMB's two phases load the same sixteen elements and compute the same u; one adds up squares, the other stores.
 * lamb_test.c covers this file. */
#include "lib/kernels/lamb/lamb_cpu.h"

#include "lib/kernels/adamw/moments.h"
#include "lib/kernels/lamb/trust.h"
#include "lib/kernels/norm/norm_bins.h"
#include "lib/kernels/norm/norm_grain.h"

enum { CHUNK = 32 }; /* grains whose sums are formed before any goes to bins (norm_cpu.c) */

typedef struct {
    lanes w, m, v, u;
} sixteen;

/* u is 0 in lanes beyond `left`, as w is. */
LANES_INLINE sixteen load(const slc_adamw_factors *f, const slc_adamw_range *r, sluice_dtype dtype, uint64_t at,
                          uint64_t left)
{
    sixteen x = {.w = lanes_load_some(r->value + at, left, 0.0f),
                 .m = lanes_load_some(r->exp_avg + at, left, 0.0f),
                 .v = lanes_load_some(r->exp_avg_sq + at, left, 0.0f)};
    moments_update(f, lanes_load_some_as(dtype, r->gradient, at, left, 0.0f), &x.m, &x.v);
    x.u = lanes_add(moments_move(f, x.m, x.v), lanes_mul(lanes_set(f->decay), x.w));
    return x;
}

LANES_INLINE void measure(sluice_dtype dtype, const slc_adamw_factors *f, const slc_adamw_range *r, uint64_t from,
                          uint64_t to, slc_lamb_bins shared)
{
    int64_t value_bins[SLC_NORM_BINS] = {0}, update_bins[SLC_NORM_BINS] = {0};
    for (uint64_t at = from; at < to;) {
        double values[CHUNK], updates[CHUNK];
        int grains = 0;
        for (; grains < CHUNK && at + LANES <= to; at += LANES, grains++) {
            sixteen x = load(f, r, dtype, at, LANES);
            values[grains] = grain_sum_lanes(x.w);
            updates[grains] = grain_sum_lanes(x.u);
        }
        if (grains < CHUNK && at < to) {
            sixteen x = load(f, r, dtype, at, to - at);
            values[grains] = grain_sum_lanes(x.w);
            updates[grains++] = grain_sum_lanes(x.u);
            at = to;
        }
        for (int i = 0; i < grains; i++) norm_bins_add(value_bins, values[i]);
        for (int i = 0; i < grains; i++) norm_bins_add(update_bins, updates[i]);
    }
    norm_bins_join(shared.value, value_bins);
    norm_bins_join(shared.update, update_bins);
}

LANES_INLINE void apply_some(const slc_adamw_factors *f, const slc_adamw_range *r, sluice_dtype dtype, bool rounds,
                             lanes rate, uint64_t at, uint64_t left)
{
    sixteen x = load(f, r, dtype, at, left);
    lanes w = lanes_sub(x.w, lanes_mul(rate, x.u));
    lanes_store_some(r->value + at, left, w);
    lanes_store_some(r->exp_avg + at, left, x.m);
    lanes_store_some(r->exp_avg_sq + at, left, x.v);
    if (rounds) lanes_store_some_as(SLUICE_BF16, r->rounded, at, left, w);
}

LANES_INLINE void apply(sluice_dtype dtype, bool rounds, const slc_adamw_factors *f, const slc_adamw_range *r,
                        float rate, uint64_t from, uint64_t to)
{
    uint64_t at = from;
    for (; at + LANES <= to; at += LANES) apply_some(f, r, dtype, rounds, lanes_set(rate), at, LANES);
    if (at < to) apply_some(f, r, dtype, rounds, lanes_set(rate), at, to - at);
}

static void measure_range(slc_adamw_factors factors, slc_adamw_range range, uint64_t from, uint64_t to,
                          slc_lamb_bins bins)
{
    if (range.no_decay) factors.decay = 0.0f;
    LANES_BY_TYPE(range.gradient_dtype, measure, &factors, &range, from, to, bins);
}

static void apply_range(slc_adamw_factors factors, slc_adamw_range range, uint64_t from, uint64_t to, float rate)
{
    if (range.no_decay) factors.decay = 0.0f;
    if (range.rounded)
        LANES_BY_TYPE(range.gradient_dtype, apply, true, &factors, &range, rate, from, to);
    else
        LANES_BY_TYPE(range.gradient_dtype, apply, false, &factors, &range, rate, from, to);
}

void SLC_ISA(slc_lamb_measure_ranges)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_lamb_args *args = context;
    uint64_t begin = 0, from, to;
    for (uint32_t i = 0; i < args->range_count; i++)
        if (slc_adamw_part_of(&args->ranges[i], &begin, first, last, &from, &to))
            measure_range(args->factors, args->ranges[i], from, to, args->bins[i]);
}

static double trust_of(const slc_lamb_args *args, uint32_t i)
{
    if (args->trust) return args->trust[i];
    const double *norms = args->norms[i];
    return norms ? lamb_trust(norms[0], norms[1], &args->bounds) : 1;
}

void SLC_ISA(slc_lamb_apply_ranges)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_lamb_args *args = context;
    uint64_t begin = 0, from, to;
    for (uint32_t i = 0; i < args->range_count; i++)
        if (slc_adamw_part_of(&args->ranges[i], &begin, first, last, &from, &to))
            apply_range(args->factors, args->ranges[i], from, to, (float)(args->learning_rate * trust_of(args, i)));
}
