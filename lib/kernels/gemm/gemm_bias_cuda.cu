/* The bias of products in bf16 with a result in fp32. */
#include "lib/kernels/gemm/gemm_cuda.h"

#include "lib/kernels/gpu.cuh"

static __global__ void __launch_bounds__(GPU_THREADS)
    add_bias(uint64_t rows, uint64_t columns, const gpu_bf16 *bias, float *c, uint64_t stride)
{
    const uint64_t step = (uint64_t)gridDim.x * GPU_THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * GPU_THREADS + threadIdx.x; i < rows * columns; i += step)
        c[i / columns * stride + i % columns] += gpu_widen(bias[i % columns]);
}

sluice_status slc_gemm_add_bias_cuda(sluice_stream *stream, uint64_t rows, uint64_t columns, const uint16_t *bias,
                                     float *c, uint64_t stride)
{
    GPU_START(add_bias, dim3(gpu_blocks(stream, rows * columns, GPU_THREADS)), dim3(GPU_THREADS), 0,
              slc_cuda_stream(stream), rows, columns, (const gpu_bf16 *)bias, c, stride);
    return slc_cuda_launched(stream, "gemm_bias");
}
