/* The trust ratio of lamb.h, for the host and in a kernel of the GPU. */
#pragma once

#include "lib/kernels/lamb/lamb.h"

/* Does what slc_lamb_trust does. */
static inline SLC_HOST_AND_GPU double lamb_trust(double value_norm, double update_norm, const slc_lamb_bounds *b)
{
    if (!(value_norm > 0 && update_norm > 0)) return 1;
    const double value = value_norm < b->lowest ? b->lowest : value_norm > b->highest ? b->highest : value_norm;
    const double ratio = value / update_norm;
    return ratio < b->least ? b->least : ratio > b->most ? b->most : ratio;
}
