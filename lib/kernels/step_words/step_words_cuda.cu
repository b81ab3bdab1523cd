/* One launch for each call. A block that finds elements which are not finite says so once; sums are integers, so their
 * order does not matter. */
#include "lib/kernels/step_words/step_words.h"

#include "lib/kernels/norm/norm_cuda.cuh"
#include "lib/kernels/step_words/conclusions.h"

/* ---- begin ---- */

static __global__ void __launch_bounds__(GPU_THREADS)
    begin_words(slc_step_words *words, uint64_t norm_words, int64_t *norm_bins)
{
    const uint64_t first = (uint64_t)blockIdx.x * GPU_THREADS + threadIdx.x;
    for (uint64_t i = first; i < norm_words; i += (uint64_t)gridDim.x * GPU_THREADS) norm_bins[i] = 0;
    if (first < SLC_NORM_BINS) words->bins[first] = 0;
    if (first) return;
    words->told.gradient_factor = 1;
    words->told.skip = 0;
    words->non_finite = 0;
    words->first_bad = UINT32_MAX;
}

sluice_status slc_step_words_begin_cuda(sluice_stream *stream, slc_step_words *words, uint32_t norm_count,
                                        int64_t (*norm_bins)[SLC_NORM_BINS])
{
    const uint64_t norm_words = (uint64_t)norm_count * SLC_NORM_BINS;
    GPU_START(begin_words, dim3(gpu_blocks(stream, norm_words, GPU_THREADS)), dim3(GPU_THREADS), 0,
              slc_cuda_stream(stream), words, norm_words, (int64_t *)norm_bins);
    return slc_cuda_launched(stream, "step_words_begin");
}

/* ---- inspect ---- */

struct inspect_shared {
    gpu_bins bins;
    uint32_t bad; /* not 0: a thread has found an element that is not finite */
};

template <class T>
static __global__ void __launch_bounds__(GPU_THREADS)
    inspect(uint64_t count, const T *x, bool aligned, bool norm, uint32_t parameter, slc_step_words *words)
{
    SLC_SHARED(inspect_shared, s);
    gpu_bins_clear(&s.bins);
    if (!threadIdx.x) s.bad = 0;
    __syncthreads();
    bool bad = false;
    const uint64_t step = (uint64_t)gridDim.x * GPU_THREADS * GPU_GRAIN;
    for (uint64_t i = ((uint64_t)blockIdx.x * GPU_THREADS + threadIdx.x) * GPU_GRAIN; i < count; i += step) {
        float v[GPU_GRAIN];
        gpu_load_grain(x + i, aligned, count - i, v);
        bad = bad || gpu_any_bad<GPU_GRAIN>(v);
        if (norm) gpu_bins_add(&s.bins, gpu_grain_sum(v));
    }
    if (bad) atomicOr(&s.bad, 1u);
    __syncthreads();
    gpu_bins_join(words->bins, s.bins);
    if (threadIdx.x || !s.bad) return;
    atomicAdd((unsigned long long *)&words->non_finite, 1ull);
    atomicMin(&words->first_bad, parameter);
}

template <class T>
static sluice_status inspect_as(sluice_stream *stream, uint64_t count, const void *x, bool norm, uint32_t parameter,
                                slc_step_words *words)
{
    GPU_START(inspect<T>, dim3(gpu_blocks(stream, count, GPU_THREADS * GPU_GRAIN)), dim3(GPU_THREADS),
              sizeof(inspect_shared), slc_cuda_stream(stream), count, (const T *)x, gpu_aligned(x), norm, parameter,
              words);
    return slc_cuda_launched(stream, "step_words_inspect");
}

sluice_status slc_step_words_inspect_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x,
                                          bool norm, uint32_t parameter, slc_step_words *words)
{
    if (!count) return SLUICE_OK;
    return GPU_BY_TYPE(dtype, inspect_as, stream, count, x, norm, parameter, words);
}

/* ---- agree ---- */

/* A thread makes one number; the first one concludes, too. They are few and far between, so blocks are small. */
enum { AGREE_THREADS = 32 };

static __global__ void __launch_bounds__(AGREE_THREADS) agree(slc_step_words_agree_args a)
{
    const uint32_t i = blockIdx.x * AGREE_THREADS + threadIdx.x;
    if (!i) step_words_conclude(a.words, a.clip, a.skip_non_finite);
    if (i < a.norm_count) a.norms[i] = step_words_number(i, a.norms_each, a.maxima_each, a.norm_bins[i]);
}

sluice_status slc_step_words_agree_cuda(sluice_stream *stream, const slc_step_words_agree_args *args)
{
    const uint32_t blocks = args->norm_count ? (args->norm_count + AGREE_THREADS - 1) / AGREE_THREADS : 1;
    GPU_START(agree, dim3(blocks), dim3(AGREE_THREADS), 0, slc_cuda_stream(stream), *args);
    return slc_cuda_launched(stream, "step_words_agree");
}
