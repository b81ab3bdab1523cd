/* The fast cross-entropy, compiled once for each instruction set. */
#ifndef SLC_KERNEL_CROSS_ENTROPY_CPU_H
#define SLC_KERNEL_CROSS_ENTROPY_CPU_H

#include "lib/kernels/isa.h"

#include <sluice/dtype.h>

typedef struct {
    uint64_t classes, stride;
    float *logits;
    sluice_dtype gradient;
    const int32_t *targets;
    float smoothing, gradient_scale;
    float *losses;
} slc_cross_entropy_args;

SLC_ISA_DECLARE(slc_cross_entropy_range); /* over ranges of rows */

#endif
