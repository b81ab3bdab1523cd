/* The fast layer norm, compiled once for each instruction set. */
#ifndef SLC_KERNEL_LAYER_NORM_CPU_H
#define SLC_KERNEL_LAYER_NORM_CPU_H

#include "lib/kernels/isa.h"

typedef struct {
    uint64_t channels;
    const float *x, *residual, *gamma, *beta;
    float epsilon;
    float *sum, *y, *mean, *rstd;
} slc_layer_norm_forward_args;

typedef struct {
    uint64_t channels;
    const float *dy, *x, *gamma, *mean, *rstd, *dx_add;
    float *dx_out;
    float *partials; /* [part][2][channels]: sums of dy * xhat and of dy over the rows of a part */
} slc_layer_norm_backward_args;

SLC_ISA_DECLARE(slc_layer_norm_forward_range);  /* ranges of rows */
SLC_ISA_DECLARE(slc_layer_norm_backward_range); /* ranges of rows */

#endif
