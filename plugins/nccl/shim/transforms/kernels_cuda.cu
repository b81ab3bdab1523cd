/* The transforms' kernels, under names that CUDA's driver can look up. */
#include "plugins/nccl/shim/transforms/kernels.h"

#include "lib/kernels/compress/compress_cuda.cuh"

/* Copies this block's slices of a piece in items of type T; what is left over goes by bytes. */
template <class T>
static __device__ __forceinline__ void copy_slices(unsigned char *to, const unsigned char *from, uint32_t bytes)
{
    const uint32_t items = bytes / sizeof(T), slice = SHIM_PIECE_SLICE / sizeof(T), threads = blockDim.x;
    for (uint32_t first = blockIdx.y * slice; first < items; first += gridDim.y * slice) {
        const uint32_t end = items - first < slice ? items : first + slice;
        for (uint32_t i = first + threadIdx.x; i < end; i += threads) ((T *)to)[i] = ((const T *)from)[i];
    }
    for (uint32_t rest = items * sizeof(T) + threadIdx.x; blockIdx.y == 0 && rest < bytes; rest += threads)
        to[rest] = from[rest];
}

static __device__ __forceinline__ void copy_piece(unsigned char *to, const unsigned char *from, uint32_t bytes)
{
    const uint64_t places = (uint64_t)to | (uint64_t)from;
    if (places % 16 == 0)
        copy_slices<uint4>(to, from, bytes);
    else if (places % 4 == 0)
        copy_slices<uint32_t>(to, from, bytes);
    else
        copy_slices<unsigned char>(to, from, bytes);
}

static __device__ __forceinline__ void gather_piece(const slc_shim_pieces &pieces)
{
    const slc_shim_piece &piece = pieces.piece[blockIdx.x];
    copy_piece(pieces.staging + (uint64_t)piece.place * SHIM_PIECE_UNIT, piece.at, piece.bytes);
}

static __device__ __forceinline__ void scatter_piece(const slc_shim_pieces &pieces)
{
    const slc_shim_piece &piece = pieces.piece[blockIdx.x];
    copy_piece(piece.at, pieces.staging + (uint64_t)piece.place * SHIM_PIECE_UNIT, piece.bytes);
}

#if defined(__CUDACC__)
/* Arguments stay where the launch has put them: a copy of 4 KiB for each thread would not fit its registers. */
#define SHIM_KERNEL(name, threads, type)                                                                               \
    extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ type arguments)

SHIM_KERNEL(sluice_shim_gather, SHIM_PIECE_THREADS, slc_shim_pieces)
{
    gather_piece(arguments);
}
SHIM_KERNEL(sluice_shim_scatter, SHIM_PIECE_THREADS, slc_shim_pieces)
{
    scatter_piece(arguments);
}
SHIM_KERNEL(sluice_shim_worker, SLC_COMPRESS_CUDA_THREADS, slc_compress_cuda_worker)
{
    SLC_SHARED(gpu_bins, bins);
    compress_worker(&bins, arguments);
}
SHIM_KERNEL(sluice_shim_server, SLC_COMPRESS_CUDA_THREADS, slc_compress_cuda_server)
{
    SLC_SHARED(gpu_bins, bins);
    compress_server(&bins, arguments);
}
SHIM_KERNEL(sluice_shim_results, SLC_COMPRESS_CUDA_THREADS, slc_compress_cuda_results)
{
    compress_results(arguments);
}
#endif
