/* One launch updates as many ranges as fit the arguments of a kernel: each block finds the range that its elements are
 * of. The operations are those of adamw_cpu.c and moments.h, in their order. */
#include "lib/kernels/adamw/adamw_cuda.h"

#include "lib/kernels/gpu.cuh"

enum { RANGES = 48, BLOCK_ELEMENTS = GPU_THREADS * GPU_EACH };

struct adamw_batch {
    slc_adamw_factors factors;
    uint32_t count;
    uint32_t first_block[RANGES];
    slc_adamw_range ranges[RANGES];
};

template <class G>
static __device__ void update8(const slc_adamw_factors &f, const slc_adamw_range &r, bool aligned, uint64_t i)
{
    const uint64_t left = r.count - i;
    const float decay = r.no_decay ? 0.0f : f.decay;
    float g[GPU_EACH], w[GPU_EACH], m[GPU_EACH], v[GPU_EACH];
    gpu_load8((const G *)r.gradient + i, aligned, left, 0.0f, g);
    gpu_load8(r.value + i, aligned, left, 0.0f, w);
    gpu_load8(r.exp_avg + i, aligned, left, 0.0f, m);
    gpu_load8(r.exp_avg_sq + i, aligned, left, 0.0f, v);
    for (int e = 0; e < GPU_EACH; e++) {
        g[e] = f.gradient_factor * g[e];
        m[e] = f.beta1 * m[e] + f.rest1 * g[e];
        v[e] = f.beta2 * v[e] + f.rest2 * g[e] * g[e];
        const float move = f.correction * m[e] / (sqrtf(v[e]) * f.rescale + f.epsilon);
        w[e] = w[e] - decay * w[e] - move;
    }
    gpu_store8(r.value + i, aligned, left, w);
    gpu_store8(r.exp_avg + i, aligned, left, m);
    gpu_store8(r.exp_avg_sq + i, aligned, left, v);
    if (r.rounded) gpu_store8((gpu_bf16 *)r.rounded + i, aligned, left, w);
}

static __global__ void __launch_bounds__(GPU_THREADS) update_ranges(adamw_batch batch)
{
    uint32_t number = 0;
    while (number + 1 < batch.count && batch.first_block[number + 1] <= blockIdx.x) number++;
    const slc_adamw_range &r = batch.ranges[number];
    const uint64_t i =
        (uint64_t)(blockIdx.x - batch.first_block[number]) * BLOCK_ELEMENTS + (uint64_t)threadIdx.x * GPU_EACH;
    if (i >= r.count) return;
    const bool aligned = ((uintptr_t)r.gradient | (uintptr_t)r.value | (uintptr_t)r.exp_avg | (uintptr_t)r.exp_avg_sq |
                          (uintptr_t)r.rounded) %
                             16 ==
                         0;
    if (r.gradient_dtype == SLUICE_BF16)
        update8<gpu_bf16>(batch.factors, r, aligned, i);
    else
        update8<float>(batch.factors, r, aligned, i);
}

sluice_status slc_adamw_cuda(sluice_stream *stream, const slc_adamw_factors *factors, uint32_t range_count,
                             const slc_adamw_range *ranges)
{
    for (uint32_t first = 0; first < range_count;) {
        adamw_batch batch = {};
        uint64_t blocks = 0;
        batch.factors = *factors;
        for (; first < range_count && batch.count < RANGES; first++) {
            if (!ranges[first].count) continue;
            batch.first_block[batch.count] = (uint32_t)blocks;
            batch.ranges[batch.count++] = ranges[first];
            blocks += (ranges[first].count + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
        }
        if (!batch.count) break;
        GPU_START(update_ranges, dim3((uint32_t)blocks), dim3(GPU_THREADS), 0, slc_cuda_stream(stream), batch);
        sluice_status status = slc_cuda_launched(stream, "adamw");
        if (status) return status;
    }
    return SLUICE_OK;
}
