/* The fast compression, compiled once for each instruction set. */
#pragma once

#include "lib/kernels/adamw/adamw_cpu.h"
#include "lib/kernels/compress/compress.h"

enum { SLC_COMPRESS_UNIT = 16, SLC_COMPRESS_GRAIN = 64 };

/* The destination of sums, bits and scales. With scale_elements 0 the items of a range are the grains of all chunks,
 * else the blocks of scale_elements; `first_item` is added to their numbers. */
typedef struct {
    uint64_t chunk, scale_elements, scales, stride, first_item;
    slc_residue residue;
    char *packets;
    int64_t *bins; /* used if scale_elements is 0; added to atomically */
} slc_compress_out;

typedef struct {
    slc_compress_out out;
    slc_compress_input input;
    uint64_t count;
    uint32_t ranks;
} slc_compress_worker_args;

typedef struct {
    slc_compress_out out;
    const void *const *packets;
    uint32_t ranks;
    uint64_t count; /* elements of the piece */
    const sluice_step_words *words;
} slc_compress_server_args;

/* The packets that pass 2 reads, one for each chunk. */
typedef struct {
    uint64_t chunk, scale_elements, scales, stride;
    const char *packets;
} slc_compress_packets;

typedef struct {
    slc_adamw_factors factors;
    slc_frozen_range range;
    slc_compress_packets packets;
    uint64_t first; /* the element that the kernel's ranges count from */
    uint64_t count; /* and how many there are */
    bool *finite;   /* or NULL; any thread may set it to false */
    const sluice_step_words *words;
} slc_compress_apply_args;

typedef struct {
    slc_adamw_factors factors;
    slc_frozen_range range;
    sluice_dtype gradient_dtype;
    const void *gradient;
    const sluice_step_words *words;
} slc_frozen_args;

SLC_ISA_DECLARE(slc_compress_worker_range); /* over ranges of items */
SLC_ISA_DECLARE(slc_compress_server_range); /* over ranges of items */
SLC_ISA_DECLARE(slc_compress_fold_range);   /* over ranges of items; its arguments are a slc_compress_out */
SLC_ISA_DECLARE(slc_compress_apply_range);  /* over ranges of elements */
SLC_ISA_DECLARE(slc_frozen_range_update);   /* over ranges of elements */

/* A chunk with what arrived for it. */
typedef struct {
    slc_compress_out out;
    const void *packets, *own;
    uint64_t stride;
    uint32_t rank, ranks;
    const sluice_step_words *words;
} slc_compress_arrived_args;

/* A tensor whose packets are looked at, with `scales` scales in each. */
typedef struct {
    slc_compress_look_args look;
    uint64_t scales;
} slc_compress_looked;

/* The most tensors that are handed to a kernel's form at a time. */
enum { SLC_COMPRESS_TOGETHER = 16 };

SLC_C_LINKAGE sluice_status slc_compress_worker_many_cuda(sluice_stream *stream, uint32_t count,
                                                          const slc_compress_worker_args *args);
SLC_C_LINKAGE sluice_status slc_compress_server_many_cuda(sluice_stream *stream, uint32_t count,
                                                          const slc_compress_arrived_args *args);
SLC_C_LINKAGE sluice_status slc_compress_server_cuda(sluice_stream *stream, const slc_compress_server_args *args);
SLC_C_LINKAGE sluice_status slc_compress_server_end_cuda(sluice_stream *stream, const slc_compress_out *out,
                                                         const sluice_step_words *words);
SLC_C_LINKAGE sluice_status slc_compress_fold_cuda(sluice_stream *stream, const slc_compress_out *out, uint32_t chunks);
SLC_C_LINKAGE sluice_status slc_compress_look_many_cuda(sluice_stream *stream, uint32_t count,
                                                        const slc_compress_looked *args);
SLC_C_LINKAGE sluice_status slc_compress_apply_many_cuda(sluice_stream *stream, uint32_t count,
                                                         const slc_compress_apply_args *args);
SLC_C_LINKAGE sluice_status slc_frozen_update_many_cuda(sluice_stream *stream, uint32_t count,
                                                        const slc_frozen_args *args);

/* Returns ARGUMENT unless elements first..first+count-1 are whole lanes of the tensor or end it. elements: the number
 * of elements of what is updated. */
sluice_status slc_compress_check_results(const slc_compress_results *results, uint64_t elements);
slc_compress_packets slc_compress_packets_of(const slc_compress_results *results);

/* True if there are words of a step and they say that nothing is to be done. */
static inline SLC_HOST_AND_GPU bool slc_compress_skips(const sluice_step_words *words)
{
    return words && words->skip;
}

/* Returns ||b|| / sqrt(count), with the norm from the bins, rounded to float; INFINITY if it is not finite. */
float slc_compress_scale(const int64_t *bins, uint64_t count);
