/* Adam's moments on lanes, for AdamW and LAMB. Memory sets the pace, so a fused multiply-add would gain nothing. */
#pragma once

#include "lib/kernels/adamw/adamw_cpu.h"
#include "lib/kernels/lanes.h"

LANES_INLINE void moments_update(const slc_adamw_factors *f, lanes g, lanes *m, lanes *v)
{
    g = lanes_mul(lanes_set(f->gradient_factor), g);
    *m = lanes_add(lanes_mul(lanes_set(f->beta1), *m), lanes_mul(lanes_set(f->rest1), g));
    *v = lanes_add(lanes_mul(lanes_set(f->beta2), *v), lanes_mul(lanes_mul(lanes_set(f->rest2), g), g));
}

/* sqrt(corrected v) + epsilon */
LANES_INLINE lanes moments_below(const slc_adamw_factors *f, lanes v)
{
    return lanes_add(lanes_mul(lanes_sqrt(v), lanes_set(f->rescale)), lanes_set(f->epsilon));
}

/* corrected m / (sqrt(corrected v) + epsilon), times the learning rate for AdamW */
LANES_INLINE lanes moments_move(const slc_adamw_factors *f, lanes m, lanes v)
{
    return lanes_div(lanes_mul(lanes_set(f->correction), m), moments_below(f, v));
}
