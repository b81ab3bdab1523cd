/* The one kernel behind the functions of gelu.h. */
#ifndef SLC_KERNEL_GELU_CPU_H
#define SLC_KERNEL_GELU_CPU_H

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

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
    uint64_t count;
    const void *x, *dy; /* forward: dy is x and unused */
    void *out;          /* may be x or dy */
} slc_gelu_args;

SLC_ISA_DECLARE(slc_gelu_range); /* over ranges of elements */
SLC_C_LINKAGE sluice_status slc_gelu_cuda(sluice_stream *stream, const slc_gelu_args *args);

#endif
