/* One-bit compression in the memory of a GPU for programs beside the library: the rules and the bits of compress.h, for
 * fp32 numbers that come without a momentum, with scale_elements > 0. One block of threads forms one scale, so that
 * each pass is a single kernel that touches every array once.
 *
 * These kernels are not part of the library, whose own are in compress_cuda.cu. A program that wants them compiles
 * compress_cuda.cuh into an image for CUDA's driver and launches them with these arguments and grids. All pointers are
 * the GPU's; those of packets, results, sums and scales are multiples of 16, and so is the stride. A residue whose
 * arrays are NULL is not kept: its error is 0. */
#pragma once

#include <stdint.h>

enum { SLC_COMPRESS_CUDA_THREADS = 128, SLC_COMPRESS_CUDA_SHARED = 384 /* bytes of a block that forms a scale */ };

/* A slc_compress_shape, and what compress.h makes of it. */
typedef struct {
    uint64_t count, chunk, scales, stride;
    uint32_t scale_elements, ranks;
} slc_compress_cuda_shape;

/* Pass 1; a block for each scale: ranks * scales of them. */
typedef struct {
    slc_compress_cuda_shape shape;
    const float *x;         /* `count` elements */
    float *sum, *scale;     /* the worker's residue */
    unsigned char *packets; /* packet k, for rank k, at k * stride */
} slc_compress_cuda_worker;

/* The server's step for the chunk of `rank`; a block for each of its scales. */
typedef struct {
    slc_compress_cuda_shape shape;
    const unsigned char *packets; /* the packet from rank r at r * stride; that from `rank` itself is not read */
    const unsigned char *own;     /* the packet from `rank` itself */
    float *sum, *scale;           /* the server's residue */
    unsigned char *result;        /* the packet that all ranks are to get */
    uint32_t rank;
} slc_compress_cuda_server;

/* Pass 2 without an update: out[i] = factor times the result of the exchange, as slc_flat_read has it, so that a failed
 * exchange gives infinities; any number of blocks. */
typedef struct {
    slc_compress_cuda_shape shape;
    const unsigned char *results; /* the result of chunk k at k * stride */
    float *out;                   /* `count` elements, at any multiple of 4 */
    float factor;
} slc_compress_cuda_results;
