/* One pass over gradient, value and both moments: 16 bytes read and 12 written an element. Memory sets the pace, so a
 * fused multiply-add would gain nothing. */
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

void SLC_ISA(slc_adamw_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_adamw_args settings = *(const slc_adamw_args *)context;
    const float *gradient = settings.gradient;
    float *value = settings.value, *exp_avg = settings.exp_avg, *exp_avg_sq = settings.exp_avg_sq;
    uint64_t at = first;
    for (; at + LANES <= last; at += LANES) {
        lanes w = lanes_load(value + at), m = lanes_load(exp_avg + at), v = lanes_load(exp_avg_sq + at);
        update(&settings, lanes_load(gradient + at), &w, &m, &v);
        lanes_store(value + at, w);
        lanes_store(exp_avg + at, m);
        lanes_store(exp_avg_sq + at, v);
    }
    if (at < last) {
        uint64_t left = last - at;
        lanes w = lanes_load_tail(value + at, left, 0.0f), m = lanes_load_tail(exp_avg + at, left, 0.0f),
              v = lanes_load_tail(exp_avg_sq + at, left, 0.0f);
        update(&settings, lanes_load_tail(gradient + at, left, 0.0f), &w, &m, &v);
        lanes_store_tail(value + at, left, w);
        lanes_store_tail(exp_avg + at, left, m);
        lanes_store_tail(exp_avg_sq + at, left, v);
    }
}
