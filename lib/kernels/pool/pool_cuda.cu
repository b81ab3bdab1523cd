/* A thread has eight channels of a row, and goes down the rows in their order, as the host does. */
#include "lib/kernels/pool/pool.h"

#include "lib/kernels/gpu.cuh"

/* Elements of y, or in backward of dx. */
template <class T, bool FORWARD> struct pool_elements {
    uint64_t tokens, channels;
    bool mean;
    const T *from;
    T *to;
    __device__ void operator()(uint64_t first, uint64_t left) const
    {
        for (uint64_t i = first; i < first + left && i < first + GPU_EACH; i++) {
            const uint64_t row = i / channels, column = i % channels;
            to[i] = gpu_round<T>(FORWARD ? pooled(row, column) : share(row, column));
        }
    }
    __device__ float pooled(uint64_t sequence, uint64_t column) const
    {
        const uint64_t begin = mean ? 1 : 0, end = mean ? tokens : 1;
        float sum = 0;
        for (uint64_t t = begin; t < end; t++) sum += gpu_widen(from[(sequence * tokens + t) * channels + column]);
        return sum / (float)(end - begin);
    }
    __device__ float share(uint64_t row, uint64_t column) const
    {
        if ((row % tokens != 0) != mean) return 0;
        return gpu_widen(from[row / tokens * channels + column]) / (mean ? (float)(tokens - 1) : 1.0f);
    }
};

template <class T, bool FORWARD>
static sluice_status pool(sluice_stream *stream, const char *name, uint64_t count, const slc_pool_args *a)
{
    const pool_elements<T, FORWARD> elements = {a->tokens, a->channels, a->kind == SLC_POOL_MEAN_OF_REST,
                                                (const T *)a->from, (T *)a->to};
    return gpu_launch_each(stream, name, count, elements);
}

template <class T> static sluice_status forward(sluice_stream *stream, const slc_pool_args *args)
{
    return pool<T, true>(stream, "pool_forward", args->batch * args->channels, args);
}

GPU_KERNEL(slc_pool_forward, slc_pool_args, dtype, forward)

template <class T> static sluice_status backward(sluice_stream *stream, const slc_pool_args *args)
{
    return pool<T, false>(stream, "pool_backward", args->batch * args->tokens * args->channels, args);
}

GPU_KERNEL(slc_pool_backward, slc_pool_args, dtype, backward)
