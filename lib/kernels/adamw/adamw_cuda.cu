/* One launch updates as many ranges as fit the arguments of a kernel: each block finds the range that its elements are
 * of. The operations are those of adamw_cpu.c, in their order. */
#include "lib/kernels/adamw/adamw_cuda.cuh"

enum { BLOCK_ELEMENTS = GPU_THREADS * GPU_EACH };

struct adamw_batch {
    slc_adamw_factors factors;
    const sluice_step_words *words;
    gpu_ranges<48> ranges;
};

template <class G>
static __device__ void update8(const slc_adamw_factors &f, const slc_adamw_range &r, bool aligned, uint64_t i)
{
    const uint64_t left = r.count - i;
    const float decay = r.no_decay ? 0.0f : f.decay;
    gpu_moments x;
    gpu_moments_load<G>(f, r, aligned, i, left, &x);
    for (int e = 0; e < GPU_EACH; e++) x.w[e] = x.w[e] - decay * x.w[e] - x.move[e];
    gpu_moments_store(r, aligned, i, left, x);
}

static __global__ void __launch_bounds__(GPU_THREADS) update_ranges(adamw_batch batch)
{
    const uint32_t place = gpu_range_of_block(batch.ranges);
    const slc_adamw_range &r = batch.ranges.at[place];
    const uint64_t i =
        (uint64_t)(blockIdx.x - batch.ranges.first_block[place]) * BLOCK_ELEMENTS + (uint64_t)threadIdx.x * GPU_EACH;
    slc_adamw_factors factors = batch.factors;
    if (i >= r.count || !slc_adamw_heed_words(batch.words, &factors)) return;
    if (r.gradient_dtype == SLUICE_BF16)
        update8<gpu_bf16>(factors, r, gpu_range_aligned(r), i);
    else
        update8<float>(factors, r, gpu_range_aligned(r), i);
}

sluice_status slc_adamw_cuda(sluice_stream *stream, const slc_adamw_args *args)
{
    adamw_batch batch = {};
    batch.factors = args->factors;
    batch.words = args->words;
    uint32_t next = 0, blocks;
    while ((blocks = gpu_ranges_take(&batch.ranges, BLOCK_ELEMENTS, args->range_count, args->ranges, &next,
                                     [](uint32_t, uint32_t) {}))) {
        GPU_START(update_ranges, dim3(blocks), dim3(GPU_THREADS), 0, slc_cuda_stream(stream), batch);
        sluice_status status = slc_cuda_launched(stream, "adamw");
        if (status) return status;
    }
    return SLUICE_OK;
}
