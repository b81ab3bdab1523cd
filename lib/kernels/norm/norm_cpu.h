/* The fast grain sums, compiled once for each instruction set. */
#ifndef SLC_KERNEL_NORM_CPU_H
#define SLC_KERNEL_NORM_CPU_H

#include "lib/kernels/isa.h"

#include <sluice/dtype.h>

enum { SLC_NORM_GRAIN = 16 };

typedef struct {
    sluice_dtype dtype;
    const void *x;
    uint64_t count;
    int64_t *bins; /* added to atomically */
} slc_norm_args;

typedef struct {
    sluice_dtype dtype;
    const void *x;
    bool *finite; /* any thread may set it to false */
} slc_finite_args;

SLC_ISA_DECLARE(slc_norm_range);   /* over ranges of grains */
SLC_ISA_DECLARE(slc_finite_range); /* over ranges of elements */

#endif
