/* Forward takes eight elements a thread, which may lie in two rows; column sums are those of gpu_sums.cuh. */
#include "lib/kernels/residual/residual_cuda.h"

#include "lib/kernels/dropout/dropout_cuda.cuh"
#include "lib/kernels/gpu_sums.cuh"

template <class T> struct residual_elements {
    uint64_t channels;
    const T *x, *bias, *scale, *residual; /* all but x may be NULL */
    T *out;
    gpu_dropout dropout;
    bool aligned;
    __device__ void operator()(uint64_t at, uint64_t left) const
    {
        float v[GPU_EACH], rest[GPU_EACH];
        gpu_load8(x + at, aligned, left, 0.0f, v);
        if (residual) gpu_load8(residual + at, aligned, left, 0.0f, rest);
        for (unsigned e = 0; e < GPU_EACH && e < left; e++) {
            const uint64_t column = (at + e) % channels;
            if (bias) v[e] += gpu_widen(bias[column]);
            if (dropout.limit) v[e] *= gpu_dropout_factor(dropout, at + e);
            if (scale) v[e] *= gpu_widen(scale[column]);
            if (residual) v[e] += rest[e];
        }
        gpu_store8(out + at, aligned, left, v);
    }
};

template <class T>
static sluice_status forward(sluice_stream *stream, uint64_t rows, uint64_t channels, const void *x, const void *bias,
                             const slc_dropout *dropout, const void *scale, const void *residual, void *out)
{
    const residual_elements<T> elements = {channels,
                                           (const T *)x,
                                           (const T *)bias,
                                           (const T *)scale,
                                           (const T *)residual,
                                           (T *)out,
                                           gpu_dropout_of(dropout),
                                           gpu_aligned(x) && gpu_aligned(residual) && gpu_aligned(out)};
    return gpu_launch_each(stream, "residual_forward", rows * channels, elements);
}

sluice_status slc_residual_forward_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t rows, uint64_t channels,
                                        const void *x, const void *bias, const slc_dropout *dropout, const void *scale,
                                        const void *residual, void *out)
{
    return GPU_BY_TYPE(dtype, forward, stream, rows, channels, x, bias, dropout, scale, residual, out);
}

/* Stores dx, and gives what is summed into dscale. */
template <class T> struct residual_column {
    uint64_t channels;
    const T *dout, *x, *bias, *scale; /* bias may be NULL */
    T *dx;
    gpu_dropout dropout;
    __device__ float operator()(uint64_t row, uint64_t column) const
    {
        const uint64_t at = row * channels + column;
        const float d = gpu_widen(dout[at]), factor = dropout.limit ? gpu_dropout_factor(dropout, at) : 1.0f;
        float kept = gpu_widen(x[at]), slope = d * gpu_widen(scale[column]);
        if (bias) kept += gpu_widen(bias[column]);
        if (dropout.limit) kept *= factor, slope *= factor;
        dx[at] = gpu_round<T>(slope);
        return d * kept;
    }
};

template <class T>
static sluice_status backward(sluice_stream *stream, sluice_dtype gradient, uint64_t rows, uint64_t channels,
                              const void *dout, const void *x, const void *bias, const slc_dropout *dropout,
                              const void *scale, void *dx, void *dscale, bool fresh, float *workspace)
{
    const residual_column<T> column = {channels,         (const T *)dout, (const T *)x,           (const T *)bias,
                                       (const T *)scale, (T *)dx,         gpu_dropout_of(dropout)};
    return gpu_launch_column_sums(stream, {"residual_backward", rows, channels, gradient, dscale, fresh, workspace},
                                  column);
}

sluice_status slc_residual_backward_cuda(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient,
                                         uint64_t rows, uint64_t channels, const void *dout, const void *x,
                                         const void *bias, const slc_dropout *dropout, const void *scale, void *dx,
                                         void *dscale, bool fresh, float *workspace)
{
    return GPU_BY_TYPE(dtype, backward, stream, gradient, rows, channels, dout, x, bias, dropout, scale, dx, dscale,
                       fresh, workspace);
}

template <class T> struct plain_column {
    uint64_t stride;
    const T *dy;
    __device__ float operator()(uint64_t row, uint64_t column) const
    {
        return gpu_widen(dy[row * stride + column]);
    }
};

template <class T>
static sluice_status sum_bias(sluice_stream *stream, sluice_dtype gradient, uint64_t rows, uint64_t columns,
                              const void *dy, uint64_t stride, void *dbias, bool fresh, float *workspace)
{
    const plain_column<T> column = {stride, (const T *)dy};
    return gpu_launch_column_sums(stream, {"bias_backward", rows, columns, gradient, dbias, fresh, workspace}, column);
}

sluice_status slc_bias_backward_cuda(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t rows,
                                     uint64_t columns, const void *dy, uint64_t stride, void *dbias, bool fresh,
                                     float *workspace)
{
    return GPU_BY_TYPE(dtype, sum_bias, stream, gradient, rows, columns, dy, stride, dbias, fresh, workspace);
}

uint64_t slc_column_sums_cuda_bytes(uint64_t rows, uint64_t columns)
{
    return gpu_column_parts(rows) * columns * sizeof(float);
}
