/* One pass over gradient, value and both moments: in fp32, 16 bytes are read and 12 written for each element.
 * adamw_test.c covers this file. */
#include "lib/kernels/adamw/adamw_cpu.h"

#include "lib/kernels/adamw/moments.h"

LANES_INLINE void some(const slc_adamw_factors *f, const slc_adamw_range *r, sluice_dtype dtype, bool rounds,
                       uint64_t at, uint64_t left)
{
    lanes w = lanes_load_some(r->value + at, left, 0.0f), m = lanes_load_some(r->exp_avg + at, left, 0.0f),
          v = lanes_load_some(r->exp_avg_sq + at, left, 0.0f);
    moments_update(f, lanes_load_some_as(dtype, r->gradient, at, left, 0.0f), &m, &v);
    w = lanes_sub(lanes_sub(w, lanes_mul(lanes_set(f->decay), w)), moments_move(f, m, v));
    lanes_store_some(r->value + at, left, w);
    lanes_store_some(r->exp_avg + at, left, m);
    lanes_store_some(r->exp_avg_sq + at, left, v);
    if (rounds) lanes_store_some_as(SLUICE_BF16, r->rounded, at, left, w);
}

LANES_INLINE void update(sluice_dtype dtype, bool rounds, const slc_adamw_factors *f, const slc_adamw_range *r,
                         uint64_t from, uint64_t to)
{
    uint64_t at = from;
    for (; at + LANES <= to; at += LANES) some(f, r, dtype, rounds, at, LANES);
    if (at < to) some(f, r, dtype, rounds, at, to - at);
}

static void update_range(slc_adamw_factors factors, slc_adamw_range range, uint64_t from, uint64_t to)
{
    if (range.no_decay) factors.decay = 0.0f;
    if (range.rounded)
        LANES_BY_TYPE(range.gradient_dtype, update, true, &factors, &range, from, to);
    else
        LANES_BY_TYPE(range.gradient_dtype, update, false, &factors, &range, from, to);
}

void SLC_ISA(slc_adamw_ranges)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_adamw_args *args = context;
    uint64_t begin = 0, from, to;
    for (uint32_t i = 0; i < args->range_count; i++)
        if (slc_adamw_part_of(&args->ranges[i], &begin, first, last, &from, &to))
            update_range(args->factors, args->ranges[i], from, to);
}
