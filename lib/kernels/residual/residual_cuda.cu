/* Forward takes eight elements a thread, which may lie in two rows; column sums are those of gpu_sums.cuh. */
#include "lib/kernels/residual/residual.h"

#include "lib/kernels/dropout/dropout_cuda.cuh"
#include "lib/kernels/gpu_sums.cuh"

/* A rule of paths as kernels take it. draw.limit 0: none. */
struct gpu_path {
    gpu_dropout draw;
    uint64_t rows; /* of a sequence */
};

static inline gpu_path gpu_path_of(const slc_drop_path *path)
{
    const gpu_path p = {gpu_dropout_of(path ? &path->draw : NULL), path ? path->rows : 1};
    return p;
}

template <class T> struct residual_elements {
    slc_residual_forward_args a;
    gpu_dropout dropout;
    gpu_path path;
    bool aligned;
    __device__ void operator()(uint64_t at, uint64_t left) const
    {
        const T *const bias = (const T *)a.bias, *const scale = (const T *)a.scale;
        float v[GPU_EACH], rest[GPU_EACH];
        gpu_load8((const T *)a.x + at, aligned, left, 0.0f, v);
        if (a.residual) gpu_load8((const T *)a.residual + at, aligned, left, 0.0f, rest);
        uint64_t sequence = UINT64_MAX;
        float drawn = 1.0f;
        for (unsigned e = 0; e < GPU_EACH && e < left; e++) {
            const uint64_t column = (at + e) % a.channels, row = (at + e) / a.channels;
            if (path.draw.limit && row / path.rows != sequence) {
                sequence = row / path.rows;
                drawn = gpu_dropout_factor(path.draw, sequence);
            }
            if (bias) v[e] += gpu_widen(bias[column]);
            if (dropout.limit) v[e] *= gpu_dropout_factor(dropout, at + e);
            if (scale) v[e] *= gpu_widen(scale[column]);
            v[e] *= a.factor * drawn;
            if (a.residual) v[e] += rest[e];
        }
        gpu_store8((T *)a.out + at, aligned, left, v);
    }
};

template <class T> static sluice_status forward(sluice_stream *stream, const slc_residual_forward_args *a)
{
    const residual_elements<T> elements = {*a, gpu_dropout_of(a->dropout), gpu_path_of(a->path),
                                           gpu_aligned(a->x) && gpu_aligned(a->residual) && gpu_aligned(a->out)};
    return gpu_launch_each(stream, "residual_forward", a->rows * a->channels, elements);
}

GPU_KERNEL(slc_residual_forward, slc_residual_forward_args, dtype, forward)

/* Stores dx, and gives what is summed into dscale. */
template <class T> struct residual_column {
    slc_residual_backward_args a;
    gpu_dropout dropout;
    gpu_path path;
    __device__ float operator()(uint64_t row, uint64_t column) const
    {
        const uint64_t at = row * a.channels + column;
        const float drawn = path.draw.limit ? gpu_dropout_factor(path.draw, row / path.rows) : 1.0f;
        const float d = gpu_widen(((const T *)a.dout)[at]) * (a.factor * drawn);
        const float factor = dropout.limit ? gpu_dropout_factor(dropout, at) : 1.0f;
        float kept = gpu_widen(((const T *)a.x)[at]), slope = d * gpu_widen(((const T *)a.scale)[column]);
        if (a.bias) kept += gpu_widen(((const T *)a.bias)[column]);
        if (dropout.limit) kept *= factor, slope *= factor;
        ((T *)a.dx)[at] = gpu_round<T>(slope);
        return d * kept;
    }
};

template <class T> static sluice_status backward(sluice_stream *stream, const slc_residual_backward_args *a)
{
    const residual_column<T> column = {*a, gpu_dropout_of(a->dropout), gpu_path_of(a->path)};
    const gpu_columns sums = {"residual_backward", a->rows,  a->channels, a->gradient,
                              a->dscale,           a->fresh, a->workspace};
    return gpu_launch_column_sums(stream, sums, column);
}

GPU_KERNEL(slc_residual_backward, slc_residual_backward_args, dtype, backward)

template <class T> struct plain_column {
    uint64_t stride;
    const T *dy;
    float factor;
    __device__ float operator()(uint64_t row, uint64_t column) const
    {
        return factor * gpu_widen(dy[row * stride + column]);
    }
};

template <class T> static sluice_status sum_bias(sluice_stream *stream, const slc_bias_backward_args *a)
{
    const plain_column<T> column = {a->stride, (const T *)a->dy, a->factor};
    const gpu_columns sums = {"bias_backward", a->rows, a->columns, a->gradient, a->dbias, a->fresh, a->workspace};
    return gpu_launch_column_sums(stream, sums, column);
}

GPU_KERNEL(slc_bias_backward, slc_bias_backward_args, dtype, sum_bias)

uint64_t slc_bias_backward_workspace_bytes_cuda(const sluice_stream *, uint64_t rows, uint64_t columns)
{
    return gpu_column_parts(rows) * columns * sizeof(float);
}
