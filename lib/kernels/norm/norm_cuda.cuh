/* Norm bins inside a kernel of the GPU: a thread sums a grain of sixteen in the host's tree (norm_grain.h) and adds it
 * to bins in shared memory as norm_bins.h does; a block then adds those to the caller's. Additions of integers have no
 * order. */
#pragma once

#include "lib/kernels/gpu.cuh"
#include "lib/kernels/norm/norm_bins.h"

enum { GPU_GRAIN = 16 };

struct gpu_bins {
    unsigned long long at[SLC_NORM_BINS];
};

/* All threads of a block call it; they meet before they add. */
static __device__ __forceinline__ void gpu_bins_clear(gpu_bins *bins)
{
    if (threadIdx.x < SLC_NORM_BINS) bins->at[threadIdx.x] = 0;
}

static __device__ void gpu_bins_add(gpu_bins *bins, double grain)
{
    const uint64_t bits = (uint64_t)__double_as_longlong(grain), piece = (1ull << NORM_PIECE_BITS) - 1;
    const unsigned exponent = (unsigned)(bits >> 52) & 0x7ff;
    if (exponent == 0x7ff) atomicAdd(&bins->at[NORM_NON_FINITE], 1ull);
    if (exponent == 0x7ff || exponent == 0) return;
    uint64_t mantissa = (bits & ((1ull << 52) - 1)) | 1ull << 52;
    int place = (int)exponent - 1075 - NORM_LOWEST;
    if (place < 0) mantissa >>= -place, place = 0;
    const uint64_t shifted = mantissa << (unsigned)place % NORM_BIN_BITS;
    const unsigned long long low = shifted & piece, middle = shifted >> NORM_PIECE_BITS & piece,
                             high = shifted >> 2 * NORM_PIECE_BITS;
    unsigned long long *bin = &bins->at[(unsigned)place / NORM_BIN_BITS];
    if (low) atomicAdd(bin, low);
    if (middle) atomicAdd(bin + 2, middle);
    if (high) atomicAdd(bin + 4, high);
}

/* All threads of a block call it, after they have synchronised since the last addition. */
static __device__ __forceinline__ void gpu_bins_join(int64_t *shared, const gpu_bins &bins)
{
    if (threadIdx.x < SLC_NORM_BINS && bins.at[threadIdx.x])
        atomicAdd((unsigned long long *)&shared[threadIdx.x], bins.at[threadIdx.x]);
}

/* Loads the grain at x, whose elements from `left` on are 0. */
template <class T>
static __device__ __forceinline__ void gpu_load_grain(const T *x, bool aligned, uint64_t left, float v[GPU_GRAIN])
{
    gpu_load8(x, aligned, left, 0.0f, v);
    gpu_load8(x + GPU_EACH, aligned, left > GPU_EACH ? left - GPU_EACH : 0, 0.0f, v + GPU_EACH);
}

static __device__ __forceinline__ double gpu_grain_sum(const float v[GPU_GRAIN])
{
    double sum[GPU_EACH];
    for (int e = 0; e < GPU_EACH; e++) sum[e] = (double)v[e] * (double)v[e] + (double)v[e + 8] * (double)v[e + 8];
    for (int e = 0; e < 4; e++) sum[e] += sum[e + 4];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* Returns true if one of the values is NaN or infinite. */
template <int COUNT> static __device__ __forceinline__ bool gpu_any_bad(const float *v)
{
    bool bad = false;
    for (int e = 0; e < COUNT; e++) bad = bad || (__float_as_uint(v[e]) & 0x7f800000u) == 0x7f800000u;
    return bad;
}
