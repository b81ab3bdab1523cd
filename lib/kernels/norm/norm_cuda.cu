/* A thread sums a grain of sixteen in the host's tree, and adds it to bins in shared memory; a block then adds those to
 * the caller's. Additions of integers have no order. */
#include "lib/kernels/norm/norm_cuda.h"

#include "lib/kernels/gpu.cuh"
#include "lib/kernels/norm/norm.h"

enum { GRAIN = 16, BIN_BITS = 12, LOWEST = -298, PIECE_BITS = 24 }; /* norm_bins.h */

struct norm_shared {
    unsigned long long bins[SLC_NORM_BINS];
};

static __device__ void add_to_bins(unsigned long long *bins, double grain)
{
    const uint64_t bits = (uint64_t)__double_as_longlong(grain), piece = (1ull << PIECE_BITS) - 1;
    const unsigned exponent = (unsigned)(bits >> 52) & 0x7ff;
    if (exponent == 0x7ff) atomicAdd(&bins[SLC_NORM_BINS - 1], 1ull);
    if (exponent == 0x7ff || exponent == 0) return;
    uint64_t mantissa = (bits & ((1ull << 52) - 1)) | 1ull << 52;
    int place = (int)exponent - 1075 - LOWEST;
    if (place < 0) mantissa >>= -place, place = 0;
    const unsigned bin = (unsigned)place / BIN_BITS;
    const uint64_t shifted = mantissa << (unsigned)place % BIN_BITS;
    if (shifted & piece) atomicAdd(&bins[bin], (unsigned long long)(shifted & piece));
    if (shifted >> PIECE_BITS & piece) atomicAdd(&bins[bin + 2], (unsigned long long)(shifted >> PIECE_BITS & piece));
    if (shifted >> 2 * PIECE_BITS) atomicAdd(&bins[bin + 4], (unsigned long long)(shifted >> 2 * PIECE_BITS));
}

template <class T>
static __global__ void __launch_bounds__(GPU_THREADS)
    bin_grains(uint64_t count, const T *x, bool aligned, unsigned long long *bins)
{
    SLC_SHARED(norm_shared, s);
    if (threadIdx.x < SLC_NORM_BINS) s.bins[threadIdx.x] = 0;
    __syncthreads();
    const uint64_t step = (uint64_t)gridDim.x * GPU_THREADS * GRAIN;
    for (uint64_t i = ((uint64_t)blockIdx.x * GPU_THREADS + threadIdx.x) * GRAIN; i < count; i += step) {
        float v[GRAIN];
        gpu_load8(x + i, aligned, count - i, 0.0f, v);
        gpu_load8(x + i + GPU_EACH, aligned, count - i > GPU_EACH ? count - i - GPU_EACH : 0, 0.0f, v + GPU_EACH);
        double sum[GPU_EACH];
        for (int e = 0; e < GPU_EACH; e++) sum[e] = (double)v[e] * (double)v[e] + (double)v[e + 8] * (double)v[e + 8];
        for (int e = 0; e < 4; e++) sum[e] += sum[e + 4];
        add_to_bins(s.bins, (sum[0] + sum[2]) + (sum[1] + sum[3]));
    }
    __syncthreads();
    if (threadIdx.x < SLC_NORM_BINS && s.bins[threadIdx.x]) atomicAdd(&bins[threadIdx.x], s.bins[threadIdx.x]);
}

template <class T> static sluice_status add(sluice_stream *stream, uint64_t count, const void *x, int64_t *bins)
{
    GPU_START(bin_grains<T>, dim3(gpu_blocks(stream, count, GPU_THREADS * GRAIN)), dim3(GPU_THREADS),
              sizeof(norm_shared), slc_cuda_stream(stream), count, (const T *)x, gpu_aligned(x),
              (unsigned long long *)bins);
    return slc_cuda_launched(stream, "norm");
}

sluice_status slc_norm_add_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, int64_t *bins)
{
    return count ? GPU_BY_TYPE(dtype, add, stream, count, x, bins) : SLUICE_OK;
}

template <class T> struct finite_elements {
    const T *x;
    bool *finite, aligned;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        float v[GPU_EACH];
        bool bad = false;
        gpu_load8(x + i, aligned, left, 0.0f, v);
        for (int e = 0; e < GPU_EACH; e++) bad = bad || (__float_as_uint(v[e]) & 0x7f800000u) == 0x7f800000u;
        if (bad) gpu_clear_flag(finite);
    }
};

template <class T> static sluice_status look(sluice_stream *stream, uint64_t count, const void *x, bool *finite)
{
    const finite_elements<T> elements = {(const T *)x, finite, gpu_aligned(x)};
    return gpu_launch_each(stream, "all_finite", count, elements);
}

sluice_status slc_all_finite_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x,
                                  bool *finite)
{
    return GPU_BY_TYPE(dtype, look, stream, count, x, finite);
}
