/* A thread has eight channels of a row, and goes down the rows in their order, as the host does. */
#include "lib/kernels/pool/pool_cuda.h"

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

template <class T>
static sluice_status forward(sluice_stream *stream, slc_pool_kind kind, uint64_t batch, uint64_t tokens,
                             uint64_t channels, const void *x, void *y)
{
    const pool_elements<T, true> elements = {tokens, channels, kind == SLC_POOL_MEAN_OF_REST, (const T *)x, (T *)y};
    return gpu_launch_each(stream, "pool_forward", batch * channels, elements);
}

sluice_status slc_pool_forward_cuda(sluice_stream *stream, sluice_dtype dtype, slc_pool_kind kind, uint64_t batch,
                                    uint64_t tokens, uint64_t channels, const void *x, void *y)
{
    return GPU_BY_TYPE(dtype, forward, stream, kind, batch, tokens, channels, x, y);
}

template <class T>
static sluice_status backward(sluice_stream *stream, slc_pool_kind kind, uint64_t batch, uint64_t tokens,
                              uint64_t channels, const void *dy, void *dx)
{
    const pool_elements<T, false> elements = {tokens, channels, kind == SLC_POOL_MEAN_OF_REST, (const T *)dy, (T *)dx};
    return gpu_launch_each(stream, "pool_backward", batch * tokens * channels, elements);
}

sluice_status slc_pool_backward_cuda(sluice_stream *stream, sluice_dtype dtype, slc_pool_kind kind, uint64_t batch,
                                     uint64_t tokens, uint64_t channels, const void *dy, void *dx)
{
    return GPU_BY_TYPE(dtype, backward, stream, kind, batch, tokens, channels, dy, dx);
}
