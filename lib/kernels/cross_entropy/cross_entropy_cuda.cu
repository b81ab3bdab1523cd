/* A block takes a row in three passes: maximum, sum of exponentials, gradient. A bf16 gradient replaces the first half
 * of the row of logits: each piece of it is stored after all threads have read the logits there, which barriers ensure.
 */
#include "lib/kernels/cross_entropy/cross_entropy.h"

#include "lib/kernels/gpu_math.cuh"

enum { WARPS = GPU_THREADS / GPU_LANES };

struct row_shared {
    float of_warp[WARPS];
};

/* Joins a value of each thread of the block, warp by warp; every thread gets the result. */
template <bool LARGEST> static __device__ float block_join(row_shared &s, float x)
{
    x = LARGEST ? gpu_warp_largest(x) : gpu_warp_sum(x);
    __syncthreads();
    if (threadIdx.x % GPU_LANES == 0) s.of_warp[threadIdx.x / GPU_LANES] = x;
    __syncthreads();
    x = s.of_warp[0];
    for (int w = 1; w < WARPS; w++) x = LARGEST ? fmaxf(x, s.of_warp[w]) : x + s.of_warp[w];
    return x;
}

template <class G> static __global__ void __launch_bounds__(GPU_THREADS) cross_entropy_rows(slc_cross_entropy_args a)
{
    SLC_SHARED(row_shared, s);
    const uint64_t row = blockIdx.x, classes = a.classes;
    const float smoothing = a.smoothing, scale = a.gradient_scale;
    float *x = (float *)a.logits + row * a.stride, *at_loss = (float *)a.losses + row;
    G *out = (G *)x;
    const int32_t target = a.targets[row];
    if (target < 0) {
        if (!threadIdx.x) *at_loss = 0;
        for (uint64_t c = threadIdx.x; scale != 0 && c < classes; c += GPU_THREADS) out[c] = gpu_round<G>(0.0f);
        return;
    }
    const float hit = x[target];
    const double even = (double)smoothing / (double)classes;
    float largest = -INFINITY, sum = 0, all = 0;
    for (uint64_t c = threadIdx.x; c < classes; c += GPU_THREADS) largest = fmaxf(largest, x[c]);
    largest = block_join<true>(s, largest);
    for (uint64_t c = threadIdx.x; smoothing > 0 && c < classes; c += GPU_THREADS) all += x[c];
    if (smoothing > 0) all = block_join<false>(s, all);
    for (uint64_t c = threadIdx.x; c < classes; c += GPU_THREADS) sum += gpu_exp(x[c] - largest);
    sum = block_join<false>(s, sum);
    double loss = log((double)sum) + ((double)largest - (double)hit);
    if (smoothing > 0) loss += (double)smoothing * ((double)hit - (double)all / (double)classes);
    if (!threadIdx.x) *at_loss = (float)loss;
    if (scale == 0) return;

    const double share = (double)gpu_exp(hit - largest) / (double)sum;
    const float factor = (float)((double)scale / (double)sum), less = (float)(even * (double)scale);
    const float at_target = (float)((share - (1.0 - (double)smoothing + even)) * (double)scale);
    for (uint64_t base = 0; base < classes; base += GPU_THREADS) {
        const uint64_t c = base + threadIdx.x;
        float value = c < classes ? gpu_exp(x[c] - largest) * factor - less : 0.0f;
        __syncthreads();
        if (c < classes) out[c] = gpu_round<G>(c == (uint64_t)target ? at_target : value);
    }
}

template <class G> static sluice_status launch(sluice_stream *stream, const slc_cross_entropy_args *args)
{
    GPU_START(cross_entropy_rows<G>, dim3((uint32_t)args->rows), dim3(GPU_THREADS), sizeof(row_shared),
              slc_cuda_stream(stream), *args);
    return slc_cuda_launched(stream, "cross_entropy");
}

sluice_status slc_cross_entropy_cuda(sluice_stream *stream, const slc_cross_entropy_args *args)
{
    return args->rows ? GPU_BY_TYPE(args->gradient, launch, stream, args) : SLUICE_OK;
}
