/* The kernels of the transforms, by the names that CUDA's driver finds them under, and their arguments: one struct
 * each. kernels_cuda.cu is compiled by nvcc into an image that the shim carries, and by the host's compiler into the
 * library that the tests' CUDA loads (HOSTCUDA_KERNELS). */
#pragma once

#include "lib/kernels/compress/compress_cuda.h"

#include <stdint.h>

#define SHIM_KERNEL_GATHER "sluice_shim_gather"   /* slc_shim_pieces: from the pieces' places to the staging */
#define SHIM_KERNEL_SCATTER "sluice_shim_scatter" /* slc_shim_pieces: back again */
#define SHIM_KERNEL_WORKER "sluice_shim_worker"   /* slc_compress_cuda_worker */
#define SHIM_KERNEL_SERVER "sluice_shim_server"   /* slc_compress_cuda_server */
#define SHIM_KERNEL_RESULTS "sluice_shim_results" /* slc_compress_cuda_results */

enum {
    SHIM_PIECES = 250, /* of a launch: its arguments may have 4 KiB, and need no memory that would have to live on */
    SHIM_PIECE_UNIT = 16,
    SHIM_PIECE_THREADS = 64,
    SHIM_PIECE_SLICE = 8192, /* bytes that a block copies: the grid is pieces times slices of the longest one */
    SHIM_SLICES = 65535,     /* of a grid, at most: the blocks of a longer piece copy several slices */
};

/* The slices of a grid that copies pieces of at most so many bytes. */
static inline uint32_t slc_shim_slices(uint32_t longest)
{
    const uint32_t wanted = longest / SHIM_PIECE_SLICE + (longest % SHIM_PIECE_SLICE != 0);
    return wanted < SHIM_SLICES ? wanted : (uint32_t)SHIM_SLICES;
}

typedef struct {
    unsigned char *at; /* anywhere */
    uint32_t bytes;
    uint32_t place; /* in the staging, in units of 16 bytes */
} slc_shim_piece;

typedef struct {
    unsigned char *staging; /* at a multiple of 16 */
    slc_shim_piece piece[SHIM_PIECES];
} slc_shim_pieces;
