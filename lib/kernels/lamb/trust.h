/* The trust ratio of lamb.h, for the host and in a kernel of the GPU. */
#pragma once

#include "lib/kernels/kernel.h"

/* Does what slc_lamb_trust does. */
static inline SLC_HOST_AND_GPU double lamb_trust(double value_norm, double update_norm, double lowest, double highest)
{
    double value = value_norm < lowest ? lowest : value_norm > highest ? highest : value_norm;
    return value_norm > 0 && update_norm > 0 ? value / update_norm : 1;
}
