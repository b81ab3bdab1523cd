/* Memory sets the pace: every pass touches each array once. zero_one_test.c covers this file. */
#include "lib/kernels/zero_one/zero_one_cpu.h"

#include "lib/kernels/adamw/moments.h"
#include "lib/kernels/compress/packets_cpu.h"

#include <math.h>

typedef slc_zero_one_packets_args packets_args;
typedef slc_zero_one_local_args local_args;

LANES_INLINE void store_value(const slc_zero_one_range *r, uint64_t at, uint64_t left, lanes w)
{
    lanes_store_some(r->value + at, left, w);
    if (r->rounded) lanes_store_some_as(SLUICE_BF16, r->rounded, at, left, w);
}

/* ---- From an exchange ---- */

LANES_INLINE void gradient_some(const packets_args *a, uint64_t at, uint64_t left, lanes g)
{
    const slc_zero_one_range *r = &a->range;
    const slc_adamw_factors *f = &a->factors;
    lanes v = lanes_load_some(r->exp_avg_sq + at, left, 0.0f), w = lanes_load_some(r->value + at, left, 0.0f),
          m = lanes_load_some(r->exp_avg + at, left, 0.0f);
    if (r->mask) g = where_positive(v, g);
    m = lanes_add(lanes_mul(lanes_set(f->beta1), m), lanes_mul(lanes_set(f->rest1), g));
    w = lanes_sub(lanes_sub(w, lanes_mul(lanes_set(f->decay), w)), moments_move(f, m, v));
    lanes_store_some(r->exp_avg + at, left, m);
    store_value(r, at, left, w);
}

LANES_INLINE void exchanged_some(const packets_args *a, uint64_t at, uint64_t left, lanes y)
{
    const slc_zero_one_range *r = &a->range;
    lanes v = lanes_load_some(r->exp_avg_sq + at, left, 0.0f), before;
    if (r->begins)
        before = lanes_load_some(r->value + at, left, 0.0f);
    else if (r->kept)
        before = lanes_load_some(r->kept + at, left, 0.0f);
    else
        before =
            lanes_sub(lanes_load_some(r->value + at, left, 0.0f), lanes_load_some(r->accumulator + at, left, 0.0f));
    if (r->mask) y = where_positive(v, y);
    lanes w = lanes_add(lanes_mul(lanes_set(a->value_factor), before), lanes_div(y, moments_below(&a->factors, v)));
    lanes_store_some(r->exp_avg + at, left, lanes_mul(lanes_set(a->momentum_factor), y));
    if (r->clears) lanes_store_some(r->accumulator + at, left, lanes_set(0.0f));
    store_value(r, at, left, w);
}

typedef void some_kernel(const packets_args *args, uint64_t at, uint64_t left, lanes exchanged);

LANES_INLINE void each_run(const packets_args *args, uint64_t first, uint64_t last, some_kernel *some)
{
    const packets_args a = *args;
    for (uint64_t at = a.first + first, end = a.first + last; at < end;) {
        const packets_run run = packets_run_at(&a.packets, at, end);
        const uint8_t *bits = run.bits;
        if (!isfinite(run.scale)) {
            packets_failed(a.finite);
            at = run.to;
            continue;
        }
        for (; at + LANES <= run.to; at += LANES, bits += 2)
            some(&a, at, LANES, with_signs(get_signs(bits, LANES), run.scale));
        if (at < run.to) some(&a, at, run.to - at, with_signs(get_signs(bits, run.to - at), run.scale));
        at = run.to;
    }
}

void SLC_ISA(slc_zero_one_gradient_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    each_run(context, first, last, gradient_some);
}

void SLC_ISA(slc_zero_one_exchanged_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    each_run(context, first, last, exchanged_some);
}

/* ---- From this rank's own gradient ---- */

/* Returns 0 in lanes that are finite, else NaN. */
LANES_INLINE lanes oddness(lanes a)
{
    LANES_EACH(a.part[i] - a.part[i]);
}

LANES_INLINE lanes unless_odd(lanes odd, lanes fresh, lanes old)
{
    LANES_EACH(part_choose((lanes_bits)(odd.part[i] == part_set(0.0f)), fresh.part[i], old.part[i]));
}

/* Returns the oddness of the new numbers. */
LANES_INLINE lanes local_some(const slc_adamw_factors *f, const slc_zero_one_range *r, sluice_dtype gradient_dtype,
                              const void *gradient, uint64_t at, uint64_t left)
{
    lanes g = lanes_load_some_as(gradient_dtype, gradient, at, left, 0.0f);
    lanes v = lanes_load_some(r->exp_avg_sq + at, left, 0.0f), m = lanes_load_some(r->exp_avg + at, left, 0.0f),
          w = lanes_load_some(r->value + at, left, 0.0f);
    lanes u = r->begins ? lanes_set(0.0f) : lanes_load_some(r->accumulator + at, left, 0.0f);
    lanes fresh = lanes_mul(lanes_set(f->rest1), lanes_mul(lanes_set(f->gradient_factor), g));
    lanes new_m = lanes_add(lanes_mul(lanes_set(f->beta1), m), fresh);
    if (r->mask) new_m = where_positive(v, new_m);
    lanes move = moments_move(f, new_m, v), decay = lanes_mul(lanes_set(f->decay), w);
    lanes new_w = lanes_sub(lanes_sub(w, decay), move);
    lanes new_u = lanes_sub(r->decay_moves ? lanes_sub(u, decay) : u, move);
    lanes odd = lanes_add(lanes_add(oddness(fresh), oddness(new_m)), lanes_add(oddness(new_w), oddness(new_u)));
    if (r->begins && r->kept) lanes_store_some(r->kept + at, left, w);
    lanes_store_some(r->exp_avg + at, left, unless_odd(odd, new_m, m));
    lanes_store_some(r->accumulator + at, left, unless_odd(odd, new_u, u));
    store_value(r, at, left, unless_odd(odd, new_w, w));
    return odd;
}

static void note_bad(uint32_t *bad, uint32_t number)
{
    uint32_t least = __atomic_load_n(bad, __ATOMIC_RELAXED);
    while (number < least &&
           !__atomic_compare_exchange_n(bad, &least, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

LANES_INLINE void local_range(sluice_dtype gradient_dtype, const local_args *args, uint64_t first, uint64_t last)
{
    const local_args a = *args;
    lanes odd = lanes_set(0.0f);
    uint64_t at = first;
    for (; at + LANES <= last; at += LANES)
        odd = lanes_add(odd, local_some(&a.factors, &a.range, gradient_dtype, a.gradient, at, LANES));
    if (at < last) odd = lanes_add(odd, local_some(&a.factors, &a.range, gradient_dtype, a.gradient, at, last - at));
    if (isnan(lanes_sum(odd)) && a.range.bad) note_bad(a.range.bad, a.range.number);
}

LANES_KERNEL(slc_zero_one_local_range, local_args, gradient_dtype, local_range)
