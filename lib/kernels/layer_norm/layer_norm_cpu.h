/* The fast layer norm, compiled once for each instruction set. */
#ifndef SLC_KERNEL_LAYER_NORM_CPU_H
#define SLC_KERNEL_LAYER_NORM_CPU_H

#include "lib/kernels/isa.h"

#include <sluice/dtype.h>
#include <stdbool.h>

typedef struct {
    sluice_dtype dtype;
    uint64_t channels;
    const void *x, *residual, *gamma, *beta;
    float epsilon;
    void *sum, *y;
    float *mean, *rstd;
    bool stream_sum, stream_y;
} slc_layer_norm_forward_args;

typedef struct {
    sluice_dtype dtype;
    uint64_t channels;
    const void *dy, *x, *gamma, *dx_add;
    const float *mean, *rstd;
    void *dx_out;
    float *partials; /* [part][2][channels]: sums of dy * xhat and of dy over the rows of a part */
    bool stream;
} slc_layer_norm_backward_args;

SLC_ISA_DECLARE(slc_layer_norm_forward_range);  /* over ranges of rows */
SLC_ISA_DECLARE(slc_layer_norm_backward_range); /* over ranges of rows */

#endif
