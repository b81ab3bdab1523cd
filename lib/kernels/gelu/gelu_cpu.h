/* The fast GELU, compiled once for each instruction set. */
#ifndef SLC_KERNEL_GELU_CPU_H
#define SLC_KERNEL_GELU_CPU_H

#include "lib/kernels/isa.h"

typedef struct {
    const float *x, *dy; /* dy NULL: forward */
    float *out;
} slc_gelu_args;

SLC_ISA_DECLARE(slc_gelu_range);

#endif
