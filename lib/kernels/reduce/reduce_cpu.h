/* The fast reduction of fp32 and bf16, compiled once for each instruction set. */
#ifndef SLC_KERNEL_REDUCE_CPU_H
#define SLC_KERNEL_REDUCE_CPU_H

#include "lib/kernels/isa.h"

#include <sluice/dtype.h>

typedef struct {
    sluice_dtype from, to;
    const void *const *sources;
    void *const *destinations;
    uint32_t source_count, destination_count;
    float scale;
    bool accumulate;
    bool stream; /* stores bypass the cache; only with 1 destination */
} slc_reduce_args;

SLC_ISA_DECLARE(slc_reduce_range);

#endif
