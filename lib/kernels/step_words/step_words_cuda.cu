/* One launch for each call, of inspections one for as many ranges as fit the arguments of a kernel. A block that finds
 * elements which are not finite says so once; sums are integers, so their order does not matter. */
#include "lib/kernels/step_words/step_words.h"

#include "lib/kernels/norm/norm_cuda.cuh"
#include "lib/kernels/step_words/conclusions.h"

/* ---- begin ---- */

static __global__ void __launch_bounds__(GPU_THREADS)
    begin_words(slc_step_words *words, uint64_t norm_words, int64_t *norm_bins)
{
    const uint64_t first = (uint64_t)blockIdx.x * GPU_THREADS + threadIdx.x;
    for (uint64_t i = first; i < norm_words; i += (uint64_t)gridDim.x * GPU_THREADS) norm_bins[i] = 0;
    if (first < SLC_NORM_BINS) words->bins[first] = words->own_bins[first] = 0;
    if (first) return;
    words->told.gradient_factor = words->own.gradient_factor = 1;
    words->told.skip = words->own.skip = 0;
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

/* Each range begins at a block. */
struct inspect_batch {
    slc_step_words *words;
    uint64_t block_elements; /* that a block looks at, a multiple of GPU_THREADS * GPU_GRAIN */
    slc_inspection norm;
    uint32_t count;
    uint32_t first_block[SLC_STEP_WORDS_RANGES];
    slc_step_words_range at[SLC_STEP_WORDS_RANGES];
};

static __device__ uint32_t range_of_block(const inspect_batch &batch)
{
    uint32_t low = 0, high = batch.count; /* the block's range is one of low..high-1 */
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (batch.first_block[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

template <class T> static __global__ void __launch_bounds__(GPU_THREADS) inspect_ranges(inspect_batch batch)
{
    SLC_SHARED(inspect_shared, s);
    gpu_bins_clear(&s.bins);
    if (!threadIdx.x) s.bad = 0;
    __syncthreads();
    const uint32_t place = range_of_block(batch);
    const slc_step_words_range &r = batch.at[place];
    const T *x = (const T *)r.x;
    const bool aligned = (uint64_t)x % 16 == 0;
    const uint64_t first = (uint64_t)(blockIdx.x - batch.first_block[place]) * batch.block_elements;
    const uint64_t end = first + batch.block_elements < r.count ? first + batch.block_elements : r.count;
    bool bad = false;
    for (uint64_t i = first + (uint64_t)threadIdx.x * GPU_GRAIN; i < end; i += GPU_THREADS * GPU_GRAIN) {
        float v[GPU_GRAIN];
        gpu_load_grain(x + i, aligned, r.count - i, v);
        bad = bad || gpu_any_bad<GPU_GRAIN>(v);
        if (batch.norm) gpu_bins_add(&s.bins, gpu_grain_sum(v));
    }
    if (bad) atomicOr(&s.bad, 1u);
    __syncthreads();
    gpu_bins_join(batch.norm == SLC_INSPECT_OWN_NORM ? batch.words->own_bins : batch.words->bins, s.bins);
    if (threadIdx.x || !s.bad) return;
    atomicAdd((unsigned long long *)&batch.words->non_finite, 1ull);
    atomicMin(&batch.words->first_bad, r.parameter);
}

/* Takes ranges from *next on, without empty ones; *next moves on. Returns the number of blocks: about as many as the
 * GPU can have at once, so that few of them add to the same words. */
static uint32_t take_ranges(const sluice_stream *stream, const slc_step_words_inspect_args *args, uint32_t *next,
                            inspect_batch *batch)
{
    enum { LEAST = GPU_THREADS * GPU_GRAIN };
    uint64_t elements = 0, blocks = 0;
    batch->count = 0;
    for (; *next < args->range_count && batch->count < SLC_STEP_WORDS_RANGES; ++*next) {
        if (!args->ranges[*next].count) continue;
        batch->at[batch->count++] = args->ranges[*next];
        elements += args->ranges[*next].count;
    }
    const uint64_t each = (elements + slc_cuda_blocks(stream) - 1) / slc_cuda_blocks(stream);
    batch->block_elements = (each + LEAST - 1) / LEAST * LEAST;
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->first_block[i] = (uint32_t)blocks;
        blocks += (batch->at[i].count + batch->block_elements - 1) / batch->block_elements;
    }
    return (uint32_t)blocks;
}

template <class T> static sluice_status inspect_as(sluice_stream *stream, const inspect_batch &batch, uint32_t blocks)
{
    GPU_START(inspect_ranges<T>, dim3(blocks), dim3(GPU_THREADS), sizeof(inspect_shared), slc_cuda_stream(stream),
              batch);
    return slc_cuda_launched(stream, "step_words_inspect");
}

sluice_status slc_step_words_inspect_cuda(sluice_stream *stream, const slc_step_words_inspect_args *args)
{
    inspect_batch batch = {};
    batch.words = args->words;
    batch.norm = args->norm;
    sluice_status status = SLUICE_OK;
    uint32_t next = 0, blocks;
    while (!status && (blocks = take_ranges(stream, args, &next, &batch)))
        status = GPU_BY_TYPE(args->dtype, inspect_as, stream, batch, blocks);
    return status;
}

/* ---- tell ---- */

static __global__ void __launch_bounds__(GPU_LANES) tell(slc_step_words *words, uint32_t count, uint32_t *numbers)
{
    if (!threadIdx.x) step_words_tell(words, count, numbers);
}

sluice_status slc_step_words_tell_cuda(sluice_stream *stream, slc_step_words *words, uint32_t count, uint32_t *numbers)
{
    GPU_START(tell, dim3(1), dim3(GPU_LANES), 0, slc_cuda_stream(stream), words, count, numbers);
    return slc_cuda_launched(stream, "step_words_tell");
}

/* ---- agree ---- */

/* A thread makes one number; the first one concludes, too. They are few and far between, so blocks are small. */
enum { AGREE_THREADS = 32 };

static __global__ void __launch_bounds__(AGREE_THREADS) agree(slc_step_words_agree_args a)
{
    const uint32_t i = blockIdx.x * AGREE_THREADS + threadIdx.x;
    if (!i) step_words_conclude(a.words, a.clip, a.scale, a.own_scale, a.skip_non_finite);
    if (i < a.norm_count) a.norms[i] = step_words_number(i, a.norms_each, a.maxima_each, a.norm_bins[i]);
}

sluice_status slc_step_words_agree_cuda(sluice_stream *stream, const slc_step_words_agree_args *args)
{
    const uint32_t blocks = args->norm_count ? (args->norm_count + AGREE_THREADS - 1) / AGREE_THREADS : 1;
    GPU_START(agree, dim3(blocks), dim3(AGREE_THREADS), 0, slc_cuda_stream(stream), *args);
    return slc_cuda_launched(stream, "step_words_agree");
}

/* ---- pack and unpack ---- */

static __global__ void __launch_bounds__(AGREE_THREADS) pack(slc_step_words_sums_args a, uint64_t parts)
{
    const uint64_t i = (uint64_t)blockIdx.x * AGREE_THREADS + threadIdx.x;
    if (i < parts) step_words_pack_part(&a, i);
}

sluice_status slc_step_words_pack_cuda(sluice_stream *stream, const slc_step_words_sums_args *args)
{
    const uint64_t parts = step_words_pack_parts(args);
    GPU_START(pack, dim3((uint32_t)((parts + AGREE_THREADS - 1) / AGREE_THREADS)), dim3(AGREE_THREADS), 0,
              slc_cuda_stream(stream), *args, parts);
    return slc_cuda_launched(stream, "step_words_pack");
}

static __global__ void __launch_bounds__(AGREE_THREADS) unpack(slc_step_words_sums_args a, uint64_t parts)
{
    const uint64_t i = (uint64_t)blockIdx.x * AGREE_THREADS + threadIdx.x;
    if (i < parts) step_words_unpack_part(&a, i);
}

sluice_status slc_step_words_unpack_cuda(sluice_stream *stream, const slc_step_words_sums_args *args)
{
    const uint64_t parts = args->head + args->norm_count;
    GPU_START(unpack, dim3((uint32_t)((parts + AGREE_THREADS - 1) / AGREE_THREADS)), dim3(AGREE_THREADS), 0,
              slc_cuda_stream(stream), *args, parts);
    return slc_cuda_launched(stream, "step_words_unpack");
}
