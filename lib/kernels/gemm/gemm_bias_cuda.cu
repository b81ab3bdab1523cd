/* The bias of products in bf16 with a result in fp32, and that of products with a factor. */
#include "lib/kernels/gemm/gemm_cuda.h"

#include "lib/kernels/gpu.cuh"

static __global__ void __launch_bounds__(GPU_THREADS)
    add_bias(uint64_t rows, uint64_t columns, const gpu_bf16 *bias, float factor, float *c, uint64_t stride)
{
    const uint64_t step = (uint64_t)gridDim.x * GPU_THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * GPU_THREADS + threadIdx.x; i < rows * columns; i += step)
        c[i / columns * stride + i % columns] += factor * gpu_widen(bias[i % columns]);
}

sluice_status slc_gemm_add_bias_cuda(sluice_stream *stream, uint64_t rows, uint64_t columns, const uint16_t *bias,
                                     float factor, float *c, uint64_t stride)
{
    GPU_START(add_bias, dim3(gpu_blocks(stream, rows * columns, GPU_THREADS)), dim3(GPU_THREADS), 0,
              slc_cuda_stream(stream), rows, columns, (const gpu_bf16 *)bias, factor, c, stride);
    return slc_cuda_launched(stream, "gemm_bias");
}

template <class T> struct scaled_bias {
    const T *bias;
    T *scaled;
    float factor;
    __device__ void operator()(uint64_t at, uint64_t left) const
    {
        for (uint64_t e = at; e < at + GPU_EACH && e - at < left; e++)
            scaled[e] = gpu_round<T>(factor * gpu_widen(bias[e]));
    }
};

template <class T>
static sluice_status scale_bias(sluice_stream *stream, uint64_t columns, const void *bias, float factor, void *scaled)
{
    const scaled_bias<T> elements = {(const T *)bias, (T *)scaled, factor};
    return gpu_launch_each(stream, "gemm_scale_bias", columns, elements);
}

sluice_status slc_gemm_scale_bias_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t columns, const void *bias,
                                       float factor, void *scaled)
{
    return GPU_BY_TYPE(dtype, scale_bias, stream, columns, bias, factor, scaled);
}
