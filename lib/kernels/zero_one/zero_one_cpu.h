/* The fast 0/1 Adam, compiled once for each instruction set. */
#pragma once

#include "lib/kernels/compress/compress_cpu.h"
#include "lib/kernels/zero_one/zero_one.h"

typedef struct {
    slc_adamw_factors factors;
    float momentum_factor, value_factor;
    slc_zero_one_range range;
    slc_compress_packets packets;
    uint64_t first; /* the element that the kernel's ranges count from */
    uint64_t count; /* and how many there are */
    bool *finite;   /* or NULL; any thread may set it to false */
    const sluice_step_words *words;
} slc_zero_one_packets_args;

typedef struct {
    slc_adamw_factors factors;
    slc_zero_one_range range;
    sluice_dtype gradient_dtype;
    const void *gradient;
    const sluice_step_words *words;
} slc_zero_one_local_args;

/* All work on ranges of elements. */
SLC_ISA_DECLARE(slc_zero_one_gradient_range);
SLC_ISA_DECLARE(slc_zero_one_exchanged_range);
SLC_ISA_DECLARE(slc_zero_one_local_range);
SLC_C_LINKAGE sluice_status slc_zero_one_gradient_many_cuda(sluice_stream *stream, uint32_t count,
                                                            const slc_zero_one_packets_args *args);
SLC_C_LINKAGE sluice_status slc_zero_one_exchanged_many_cuda(sluice_stream *stream, uint32_t count,
                                                             const slc_zero_one_packets_args *args);
SLC_C_LINKAGE sluice_status slc_zero_one_local_many_cuda(sluice_stream *stream, uint32_t count,
                                                         const slc_zero_one_local_args *args);
