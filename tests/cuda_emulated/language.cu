/* Kernels with which emulated_test.c compares the emulated language with what CUDA's manual says. */
#include "tests/cuda_emulated/language.h"

#include <emulated_gpu.h>

static __global__ void do_warp_operations(unsigned *out)
{
    const unsigned lane = threadIdx.x % 32, half = lane < 16 ? 0xffffu : 0xffff0000u;
    unsigned *own = out + blockIdx.x * LANGUAGE_RESULTS * blockDim.x + threadIdx.x;
    unsigned at = 0;
    auto put = [&](unsigned value) { own[at++ * blockDim.x] = value; };
    put(__shfl_sync(~0u, lane * 3, 5));
    put(__shfl_sync(~0u, lane * 3, (int)lane + 1, 8));
    put(__shfl_xor_sync(~0u, lane, 3));
    put(__shfl_down_sync(half, lane, 2, 16));
    put(__reduce_add_sync(half, lane));
    put(__reduce_max_sync(~0u, lane * 7 % 32));
    put(__reduce_min_sync(~0u, lane * 7 % 32 + 4));
    put(__ballot_sync(~0u, lane % 3 == 0));
    put((unsigned)__any_sync(half, lane == 20));
    put((unsigned)__all_sync(half, lane < 16));
    put(__reduce_or_sync(~0u, lane));
    put(__reduce_and_sync(~0u, lane | 64));
    put(threadIdx.x + blockIdx.x * blockDim.x);
    put(gridDim.x);
}

struct tile {
    alignas(16) uint16_t a[16][24], b[16][24], c[64];
    float sum;
};

/* One warp: c = a b for bf16 or fp16 tiles of 16 x 16, which arrive by cp.async and go through ldmatrix. */
static __global__ void multiply_tiles(const uint16_t *a, const uint16_t *b, float *c, bool halves)
{
    SLC_SHARED(tile, s);
    const unsigned lane = threadIdx.x;
    cp_async_16(&s.a[lane / 2][lane % 2 * 8], a + lane * 8);
    cp_async_commit();
    cp_async_16(&s.b[lane / 2][lane % 2 * 8], b + lane * 8);
    if (lane < 8) cp_async_16(&s.c[lane * 8], b, false);
    cp_async_commit();
    cp_async_wait_but<1>();
    __syncthreads();
    uint32_t left[4], right[4];
    ldmatrix_x4<false>(left, &s.a[lane % 16][lane / 16 * 8]);
    cp_async_wait_but<0>();
    __syncthreads();
    ldmatrix_x4<true>(right, &s.b[lane % 16][lane / 16 * 8]);
    float low[4], high[4];
    for (int i = 0; i < 4; i++) low[i] = high[i] = (float)s.c[i];
    if (halves) {
        mma_fp16(low, left, right);
        mma_fp16(high, left, right + 2);
    } else {
        mma_bf16(low, left, right);
        mma_bf16(high, left, right + 2);
    }
    for (int i = 0; i < 4; i++) {
        const unsigned row = lane / 4 + (i >= 2 ? 8 : 0), column = lane % 4 * 2 + i % 2;
        c[row * 16 + column] = low[i];
        c[row * 16 + column + 8] = high[i];
    }
}

/* Blocks add to one sum; the last one to end writes it out. */
static __global__ void add_blocks(unsigned *words, float *out)
{
    SLC_SHARED(tile, s);
    if (!threadIdx.x) s.sum = 0;
    __syncthreads();
    atomicAdd(&s.sum, (float)(threadIdx.x + 1));
    __syncthreads();
    if (threadIdx.x) return;
    out[1 + blockIdx.x] = s.sum;
    atomicMin(words + 1, blockIdx.x + 7);
    atomicMax(words + 2, blockIdx.x);
    atomicOr(words + 3, 1u << blockIdx.x);
    __threadfence();
    if (atomicAdd(words, 1u) + 1 < gridDim.x) return;
    __threadfence();
    float sum = 0;
    for (unsigned b = 0; b < gridDim.x; b++) sum += out[1 + b];
    out[0] = sum;
}

static __global__ void read_fresh_memory(const float *fresh, unsigned *out)
{
    SLC_SHARED(tile, s);
    out[0] = fresh[threadIdx.x] != fresh[threadIdx.x];
    out[1] = s.sum != s.sum;
}

static __global__ void scale(unsigned count, float factor, float *x)
{
    const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 4 > count) return;
    float4 v = *(const float4 *)(x + i);
    *(float4 *)(x + i) = make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
}

cudaError_t language_warp_operations(cudaStream_t stream, unsigned blocks, unsigned threads, unsigned *out)
{
    GPU_QUEUE(do_warp_operations, dim3(blocks), dim3(threads), 0, stream, out);
    return cudaGetLastError();
}

cudaError_t language_multiply(cudaStream_t stream, const uint16_t *a, const uint16_t *b, float *c, bool halves)
{
    GPU_QUEUE(multiply_tiles, dim3(1), dim3(32), sizeof(tile), stream, a, b, c, halves);
    return cudaGetLastError();
}

cudaError_t language_add_blocks(cudaStream_t stream, unsigned blocks, unsigned threads, unsigned *words, float *out)
{
    GPU_QUEUE(add_blocks, dim3(blocks), dim3(threads), sizeof(tile), stream, words, out);
    return cudaGetLastError();
}

cudaError_t language_read_fresh(cudaStream_t stream, const float *fresh, unsigned *out)
{
    GPU_QUEUE(read_fresh_memory, dim3(1), dim3(1), sizeof(tile), stream, fresh, out);
    return cudaGetLastError();
}

cudaError_t language_scale(cudaStream_t stream, unsigned blocks, unsigned threads, unsigned count, float factor,
                           float *x)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.stream = stream;
    const cudaError_t error = cudaLaunchKernelEx(&config, scale, count, factor, x);
    return cudaGetLastError() == error ? error : cudaErrorNotSupported; /* both must say the same */
}
