/* The fast grains, compiled once for each instruction set. */
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
    bool *finite; /* set to false, by any thread */
} slc_finite_args;

SLC_ISA_DECLARE(slc_norm_range);   /* ranges of grains */
SLC_ISA_DECLARE(slc_finite_range); /* ranges of elements */

#endif
