/* The fast additions, compiled once for each instruction set. */
#ifndef SLC_KERNEL_RESIDUAL_CPU_H
#define SLC_KERNEL_RESIDUAL_CPU_H

#include "lib/kernels/isa.h"

typedef struct {
    const float *a, *b;
    float *out;
} slc_add_args;

typedef struct {
    uint64_t rows, columns;
    const float *dy;
    float *dbias;
    int fresh;
} slc_bias_args;

SLC_ISA_DECLARE(slc_add_range);  /* ranges of elements */
SLC_ISA_DECLARE(slc_bias_range); /* ranges of columns */

#endif
