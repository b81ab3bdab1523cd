/* The fast conversion, compiled once for each instruction set. */
#ifndef SLC_KERNEL_CONVERT_CPU_H
#define SLC_KERNEL_CONVERT_CPU_H

#include "lib/kernels/isa.h"

#include <sluice/dtype.h>

typedef struct {
    sluice_dtype from, to;
    const void *x;
    void *y;
    bool stream;
} slc_convert_args;

SLC_ISA_DECLARE(slc_convert_range); /* over ranges of elements */

#endif
