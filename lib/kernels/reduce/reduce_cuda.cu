/* Eight elements a thread; a thread reads all its sources before it stores, so a destination may be a source. */
#include "lib/kernels/reduce/reduce.h"

#include "lib/kernels/gpu.cuh"

template <class From, class To> struct reduce_elements {
    uint32_t source_count, destination_count;
    float scale;
    bool accumulate, aligned;
    const From *sources[SLC_REDUCE_CUDA_MOST];
    To *destinations[SLC_REDUCE_CUDA_MOST];
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        float sum[GPU_EACH], v[GPU_EACH];
        gpu_load8(sources[0] + i, aligned, left, 0.0f, sum);
        for (uint32_t s = 1; s < source_count; s++) {
            gpu_load8(sources[s] + i, aligned, left, 0.0f, v);
            for (int e = 0; e < GPU_EACH; e++) sum[e] += v[e];
        }
        if (accumulate) gpu_load8(destinations[0] + i, aligned, left, 0.0f, v);
        for (int e = 0; e < GPU_EACH; e++) sum[e] = accumulate ? v[e] + scale * sum[e] : scale * sum[e];
        for (uint32_t d = 0; d < destination_count; d++) gpu_store8(destinations[d] + i, aligned, left, sum);
    }
};

template <class From, class To> static sluice_status launch(sluice_stream *stream, const slc_reduce_args *args)
{
    reduce_elements<From, To> r = {
        args->source_count, args->destination_count, args->scale, args->accumulate, true, {}, {}};
    for (uint32_t s = 0; s < args->source_count; s++) {
        r.sources[s] = (const From *)args->sources[s];
        r.aligned = r.aligned && gpu_aligned(args->sources[s]);
    }
    for (uint32_t d = 0; d < args->destination_count; d++) {
        r.destinations[d] = (To *)args->destinations[d];
        r.aligned = r.aligned && gpu_aligned(args->destinations[d]);
    }
    return gpu_launch_each(stream, "reduce", args->count, r);
}

GPU_KERNEL_OF_TYPES(slc_reduce, slc_reduce_args, from, to, launch)

/* Small vectors of a type that is summed as it is. */
template <class T> struct reduce_small {
    uint32_t source_count, destination_count;
    const T *sources[SLC_REDUCE_CUDA_MOST];
    T *destinations[SLC_REDUCE_CUDA_MOST];
    __device__ void operator()(uint64_t first, uint64_t left) const
    {
        const uint64_t last = first + left;
        for (uint64_t i = first; i < last && i < first + GPU_EACH; i++) {
            T sum = sources[0][i];
            for (uint32_t s = 1; s < source_count; s++) sum += sources[s][i];
            for (uint32_t d = 0; d < destination_count; d++) destinations[d][i] = sum;
        }
    }
};

template <class T>
static sluice_status launch_small(sluice_stream *stream, uint64_t count, const T *const *sources, uint32_t source_count,
                                  T *const *destinations, uint32_t destination_count)
{
    reduce_small<T> r = {source_count, destination_count, {}, {}};
    for (uint32_t s = 0; s < source_count; s++) r.sources[s] = sources[s];
    for (uint32_t d = 0; d < destination_count; d++) r.destinations[d] = destinations[d];
    return gpu_launch_each(stream, "reduce", count, r);
}

sluice_status slc_reduce_int64_cuda(sluice_stream *stream, uint64_t count, const int64_t *const *sources,
                                    uint32_t source_count, int64_t *const *destinations, uint32_t destination_count)
{
    return launch_small(stream, count, sources, source_count, destinations, destination_count);
}

sluice_status slc_reduce_float64_cuda(sluice_stream *stream, uint64_t count, const double *const *sources,
                                      uint32_t source_count, double *const *destinations, uint32_t destination_count)
{
    return launch_small(stream, count, sources, source_count, destinations, destination_count);
}
