/* One pass over gradient, value and buffer. Memory sets the pace, so a fused multiply-add would gain nothing.
 * sgd_test.c covers this file. */
#include "lib/kernels/sgd/sgd.h"

#include "lib/kernels/lanes.h"

LANES_INLINE void some(const slc_sgd_args *a, sluice_dtype dtype, bool has_buffer, uint64_t at, uint64_t left)
{
    const lanes momentum = lanes_set((float)a->momentum);
    float *value = (float *)a->value + at, *buffer = has_buffer ? (float *)a->buffer + at : NULL;
    lanes g = lanes_load_some_as(dtype, a->gradient, at, left, 0.0f), w = lanes_load_some(value, left, 0.0f);
    g = lanes_mul(lanes_set((float)a->gradient_factor), g);
    g = lanes_add(g, lanes_mul(lanes_set((float)a->weight_decay), w));
    if (has_buffer) {
        lanes m = lanes_mul(momentum, lanes_load_some(buffer, left, 0.0f));
        m = lanes_add(m, lanes_mul(lanes_set((float)a->rest), g));
        lanes_store_some(buffer, left, m);
        g = a->nesterov ? lanes_add(g, lanes_mul(momentum, m)) : m;
    }
    w = lanes_sub(w, lanes_mul(lanes_set((float)a->learning_rate), g));
    lanes_store_some(value, left, w);
    if (a->rounded) lanes_store_some_as(SLUICE_BF16, a->rounded, at, left, w);
}

LANES_INLINE void update(const slc_sgd_args *a, sluice_dtype dtype, bool has_buffer, uint64_t from, uint64_t to)
{
    uint64_t at = from;
    for (; at + LANES <= to; at += LANES) some(a, dtype, has_buffer, at, LANES);
    if (at < to) some(a, dtype, has_buffer, at, to - at);
}

void SLC_ISA(slc_sgd_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_sgd_args *a = context;
    if (a->gradient_dtype == SLUICE_FP32 && a->buffer)
        update(a, SLUICE_FP32, true, first, last);
    else if (a->gradient_dtype == SLUICE_FP32)
        update(a, SLUICE_FP32, false, first, last);
    else if (a->buffer)
        update(a, SLUICE_BF16, true, first, last);
    else
        update(a, SLUICE_BF16, false, first, last);
}
