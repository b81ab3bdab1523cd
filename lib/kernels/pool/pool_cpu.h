/* The fast pooling, compiled once for each instruction set. */
#ifndef SLC_KERNEL_POOL_CPU_H
#define SLC_KERNEL_POOL_CPU_H

#include "lib/kernels/isa.h"
#include "lib/kernels/pool/pool.h"

typedef struct {
    sluice_dtype dtype;
    slc_pool_kind kind;
    uint64_t tokens, channels;
    const void *from;
    void *to;
} slc_pool_args;

SLC_ISA_DECLARE(slc_pool_forward_range);  /* over ranges of sequences */
SLC_ISA_DECLARE(slc_pool_backward_range); /* over ranges of rows */

#endif
