/* A thread sums a grain of sixteen in the host's tree, and adds it to bins in shared memory; a block then adds those to
 * the caller's. Additions of integers have no order. */
#include "lib/kernels/norm/norm.h"

#include "lib/kernels/norm/norm_cuda.cuh"

struct norm_shared {
    gpu_bins bins;
};

template <class T>
static __global__ void __launch_bounds__(GPU_THREADS)
    bin_grains(uint64_t count, const T *x, bool aligned, int64_t *bins)
{
    SLC_SHARED(norm_shared, s);
    gpu_bins_clear(&s.bins);
    __syncthreads();
    const uint64_t step = (uint64_t)gridDim.x * GPU_THREADS * GPU_GRAIN;
    for (uint64_t i = ((uint64_t)blockIdx.x * GPU_THREADS + threadIdx.x) * GPU_GRAIN; i < count; i += step) {
        float v[GPU_GRAIN];
        gpu_load_grain(x + i, aligned, count - i, v);
        gpu_bins_add(&s.bins, gpu_grain_sum(v));
    }
    __syncthreads();
    gpu_bins_join(bins, s.bins);
}

template <class T> static sluice_status add(sluice_stream *stream, uint64_t count, const void *x, int64_t *bins)
{
    GPU_START(bin_grains<T>, dim3(gpu_blocks(stream, count, GPU_THREADS * GPU_GRAIN)), dim3(GPU_THREADS),
              sizeof(norm_shared), slc_cuda_stream(stream), count, (const T *)x, gpu_aligned(x), bins);
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
        gpu_load8(x + i, aligned, left, 0.0f, v);
        if (gpu_any_bad<GPU_EACH>(v)) gpu_clear_flag(finite);
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
