/* The fast GELU and tanh, compiled once for each instruction set. */
#ifndef SLC_KERNEL_GELU_CPU_H
#define SLC_KERNEL_GELU_CPU_H

#include "lib/kernels/isa.h"

#include <sluice/dtype.h>

typedef enum {
    SLC_GELU_TANH_FORWARD,
    SLC_GELU_TANH_BACKWARD,
    SLC_GELU_ERF_FORWARD,
    SLC_GELU_ERF_BACKWARD,
    SLC_TANH_FORWARD,
    SLC_TANH_BACKWARD,
} slc_gelu_function;

typedef struct {
    slc_gelu_function function;
    sluice_dtype dtype;
    const void *x, *dy; /* forward: dy is x and unused */
    void *out;
    bool stream;
} slc_gelu_args;

SLC_ISA_DECLARE(slc_gelu_range); /* over ranges of elements */

#endif
