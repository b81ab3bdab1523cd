/* The fast copies into and out of flat arrays, compiled once for each instruction set. */
#pragma once

#include "lib/kernels/compress/compress_cpu.h"

typedef struct {
    slc_compress_input input;
    slc_compress_packets packets;
    uint64_t first;
    float *out;
} slc_flat_args;

SLC_ISA_DECLARE(slc_flat_write_range); /* over ranges of elements */
SLC_ISA_DECLARE(slc_flat_read_range);
SLC_C_LINKAGE sluice_status slc_flat_write_cuda(sluice_stream *stream, const slc_flat_args *args, uint64_t count);
SLC_C_LINKAGE sluice_status slc_flat_read_cuda(sluice_stream *stream, const slc_flat_args *args, uint64_t count);
