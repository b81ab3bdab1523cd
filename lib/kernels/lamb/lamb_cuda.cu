/* LAMB on the GPU. As with AdamW, a launch takes as many ranges as fit the arguments of a kernel. In the first phase a
 * thread forms the sums of a grain in the host's tree; in the second it updates eight elements. The operations are
 * those of lamb_cpu.c, in their order. */
#include "lib/kernels/lamb/lamb_cpu.h"

#include "lib/kernels/adamw/adamw_cuda.cuh"
#include "lib/kernels/lamb/trust.h"
#include "lib/kernels/norm/norm_cuda.cuh"

enum { RANGES = 40 }; /* of a launch */

/* Turns the moves of eight elements into LAMB's u. */
static __device__ __forceinline__ void add_decay(float decay, gpu_moments *x)
{
    for (int e = 0; e < GPU_EACH; e++) x->move[e] = x->move[e] + decay * x->w[e];
}

/* ---- measure ---- */

/* Grains that a thread sums up: fewer blocks add to the same bins of a range. */
enum { GRAINS = 4, MEASURE_ELEMENTS = GPU_THREADS * GPU_GRAIN * GRAINS };

struct measure_batch {
    slc_adamw_factors factors;
    const sluice_step_words *words;
    gpu_ranges<RANGES> ranges;
    slc_lamb_bins bins[RANGES];
};

struct measure_shared {
    gpu_bins value, update;
};

template <class G>
static __device__ void measure_grain(const slc_adamw_factors &f, const slc_adamw_range &r, uint64_t at,
                                     measure_shared *s)
{
    const bool aligned = gpu_range_aligned(r);
    float w[GPU_GRAIN], u[GPU_GRAIN];
    for (int half = 0; half < GPU_GRAIN; half += GPU_EACH) {
        const uint64_t left = r.count - at > (uint64_t)half ? r.count - at - half : 0;
        gpu_moments x;
        gpu_moments_load<G>(f, r, aligned, at + half, left, &x);
        add_decay(f.decay, &x);
        for (int e = 0; e < GPU_EACH; e++) w[half + e] = x.w[e], u[half + e] = x.move[e];
    }
    gpu_bins_add(&s->value, gpu_grain_sum(w));
    gpu_bins_add(&s->update, gpu_grain_sum(u));
}

static __global__ void __launch_bounds__(GPU_THREADS) measure_ranges(measure_batch batch)
{
    SLC_SHARED(measure_shared, s);
    slc_adamw_factors factors = batch.factors;
    if (!slc_adamw_heed_words(batch.words, &factors)) return;
    const uint32_t place = gpu_range_of_block(batch.ranges);
    const slc_adamw_range &r = batch.ranges.at[place];
    if (r.no_decay) factors.decay = 0.0f;
    gpu_bins_clear(&s.value);
    gpu_bins_clear(&s.update);
    __syncthreads();
    const uint64_t first = (uint64_t)(blockIdx.x - batch.ranges.first_block[place]) * MEASURE_ELEMENTS;
    for (int k = 0; k < GRAINS; k++) {
        const uint64_t at = first + ((uint64_t)k * GPU_THREADS + threadIdx.x) * GPU_GRAIN;
        if (at >= r.count) break;
        if (r.gradient_dtype == SLUICE_BF16)
            measure_grain<gpu_bf16>(factors, r, at, &s);
        else
            measure_grain<float>(factors, r, at, &s);
    }
    __syncthreads();
    gpu_bins_join(batch.bins[place].value, s.value);
    gpu_bins_join(batch.bins[place].update, s.update);
}

sluice_status slc_lamb_measure_cuda(sluice_stream *stream, const slc_lamb_args *args)
{
    measure_batch batch = {};
    batch.factors = args->factors;
    batch.words = args->words;
    const auto take_bins = [&](uint32_t place, uint32_t number) { batch.bins[place] = args->bins[number]; };
    uint32_t next = 0, blocks;
    while ((blocks =
                gpu_ranges_take(&batch.ranges, MEASURE_ELEMENTS, args->range_count, args->ranges, &next, take_bins))) {
        GPU_START(measure_ranges, dim3(blocks), dim3(GPU_THREADS), sizeof(measure_shared), slc_cuda_stream(stream),
                  batch);
        sluice_status status = slc_cuda_launched(stream, "lamb_measure");
        if (status) return status;
    }
    return SLUICE_OK;
}

/* ---- apply ---- */

enum { APPLY_ELEMENTS = GPU_THREADS * GPU_EACH };

struct apply_batch {
    slc_adamw_factors factors;
    const sluice_step_words *words;
    double learning_rate;
    slc_lamb_bounds bounds;
    gpu_ranges<RANGES> ranges;
    double trust[RANGES];
    const double *norms[RANGES]; /* not NULL: the trust ratio follows from these two */
};

template <class G>
static __device__ void apply8(const slc_adamw_factors &f, const slc_adamw_range &r, float rate, uint64_t at)
{
    const bool aligned = gpu_range_aligned(r);
    const uint64_t left = r.count - at;
    gpu_moments x;
    gpu_moments_load<G>(f, r, aligned, at, left, &x);
    add_decay(f.decay, &x);
    for (int e = 0; e < GPU_EACH; e++) x.w[e] = x.w[e] - rate * x.move[e];
    gpu_moments_store(r, aligned, at, left, x);
}

static __global__ void __launch_bounds__(GPU_THREADS) apply_ranges(apply_batch batch)
{
    const uint32_t place = gpu_range_of_block(batch.ranges);
    const slc_adamw_range &r = batch.ranges.at[place];
    const uint64_t at =
        (uint64_t)(blockIdx.x - batch.ranges.first_block[place]) * APPLY_ELEMENTS + (uint64_t)threadIdx.x * GPU_EACH;
    slc_adamw_factors factors = batch.factors;
    if (at >= r.count || !slc_adamw_heed_words(batch.words, &factors)) return;
    if (r.no_decay) factors.decay = 0.0f;
    const double *norms = batch.norms[place];
    const double trust = norms ? lamb_trust(norms[0], norms[1], &batch.bounds) : batch.trust[place];
    const float rate = (float)(batch.learning_rate * trust);
    if (r.gradient_dtype == SLUICE_BF16)
        apply8<gpu_bf16>(factors, r, rate, at);
    else
        apply8<float>(factors, r, rate, at);
}

sluice_status slc_lamb_apply_cuda(sluice_stream *stream, const slc_lamb_args *args)
{
    apply_batch batch = {};
    batch.factors = args->factors;
    batch.words = args->words;
    batch.learning_rate = args->learning_rate;
    batch.bounds = args->bounds;
    const auto take_trust = [&](uint32_t place, uint32_t number) {
        batch.norms[place] = args->trust ? nullptr : args->norms[number];
        batch.trust[place] = args->trust ? args->trust[number] : 1;
    };
    uint32_t next = 0, blocks;
    while (
        (blocks = gpu_ranges_take(&batch.ranges, APPLY_ELEMENTS, args->range_count, args->ranges, &next, take_trust))) {
        GPU_START(apply_ranges, dim3(blocks), dim3(GPU_THREADS), 0, slc_cuda_stream(stream), batch);
        sluice_status status = slc_cuda_launched(stream, "lamb_apply");
        if (status) return status;
    }
    return SLUICE_OK;
}
