/* The fast copies into and out of flat arrays, compiled once for each instruction set. */
#pragma once

#include "lib/kernels/compress/compress_cpu.h"

typedef struct {
    slc_compress_input input;
    slc_compress_packets packets;
    uint64_t first, count;
    float *out;
} slc_flat_args;

SLC_ISA_DECLARE(slc_flat_write_range); /* over ranges of elements */
SLC_ISA_DECLARE(slc_flat_read_range);
SLC_C_LINKAGE sluice_status slc_flat_write_many_cuda(sluice_stream *stream, uint32_t count, const slc_flat_args *args);
SLC_C_LINKAGE sluice_status slc_flat_read_cuda(sluice_stream *stream, const slc_flat_args *args);
