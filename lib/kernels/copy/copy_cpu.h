/* The fast copy past the cache, compiled once for each instruction set. */
#ifndef SLC_KERNEL_COPY_CPU_H
#define SLC_KERNEL_COPY_CPU_H

#include "lib/kernels/isa.h"

typedef struct {
    void *dst;
    const void *src;
} slc_copy_args;

SLC_ISA_DECLARE(slc_copy_range); /* counts bytes */

#endif
