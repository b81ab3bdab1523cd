/* One pass over gradient, value and both moments: 16 bytes read and 12 written an element of fp32. Memory sets the
 * pace, so a fused multiply-add would gain nothing. */
#include "lib/kernels/adamw/adamw_cpu.h"

#include "lib/kernels/lanes.h"

LANES_INLINE void update(const slc_adamw_args *s, lanes g, lanes *w, lanes *m, lanes *v)
{
    g = lanes_mul(lanes_set(s->gradient_factor), g);
    *m = lanes_add(lanes_mul(lanes_set(s->beta1), *m), lanes_mul(lanes_set(s->rest1), g));
    *v = lanes_add(lanes_mul(lanes_set(s->beta2), *v), lanes_mul(lanes_mul(lanes_set(s->rest2), g), g));
    lanes below = lanes_add(lanes_mul(lanes_sqrt(*v), lanes_set(s->rescale)), lanes_set(s->epsilon));
    lanes move = lanes_div(lanes_mul(lanes_set(s->step), *m), below);
    *w = lanes_sub(lanes_sub(*w, lanes_mul(lanes_set(s->decay), *w)), move);
}

LANES_INLINE void some(const slc_adamw_args *s, sluice_dtype dtype, bool rounds, uint64_t at, uint64_t left)
{
    lanes w = lanes_load_some(s->value + at, left, 0.0f), m = lanes_load_some(s->exp_avg + at, left, 0.0f),
          v = lanes_load_some(s->exp_avg_sq + at, left, 0.0f);
    update(s, lanes_load_some_as(dtype, s->gradient, at, left, 0.0f), &w, &m, &v);
    lanes_store_some(s->value + at, left, w);
    lanes_store_some(s->exp_avg + at, left, m);
    lanes_store_some(s->exp_avg_sq + at, left, v);
    if (rounds) lanes_store_some_as(SLUICE_BF16, s->rounded, at, left, w);
}

LANES_INLINE void range(const slc_adamw_args *s, sluice_dtype dtype, bool rounds, uint64_t first, uint64_t last)
{
    uint64_t at = first;
    for (; at + LANES <= last; at += LANES) some(s, dtype, rounds, at, LANES);
    if (at < last) some(s, dtype, rounds, at, last - at);
}

void SLC_ISA(slc_adamw_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_adamw_args settings = *(const slc_adamw_args *)context;
    bool rounds = settings.rounded != NULL;
    if (settings.gradient_dtype == SLUICE_FP32 && !rounds)
        range(&settings, SLUICE_FP32, false, first, last);
    else if (settings.gradient_dtype == SLUICE_FP32)
        range(&settings, SLUICE_FP32, true, first, last);
    else if (!rounds)
        range(&settings, SLUICE_BF16, false, first, last);
    else
        range(&settings, SLUICE_BF16, true, first, last);
}
