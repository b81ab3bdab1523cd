/* A warp takes a row, eight elements a lane at a time; the row is read again from the cache for each pass. Backward
 * sums the columns first, because dx may replace dy. */
#include "lib/kernels/layer_norm/layer_norm_cuda.h"

#include "lib/kernels/gpu_sums.cuh"

enum { WARPS = 8, STEP = GPU_LANES * GPU_EACH };

template <class T> struct norm_forward {
    uint64_t rows, channels;
    const T *x, *residual, *gamma, *beta; /* residual may be NULL */
    T *sum, *y;
    float epsilon;
    float *mean, *rstd;
    bool aligned; /* all arrays, and rows */
};

template <class T> static __global__ void __launch_bounds__(WARPS *GPU_LANES) normalise_rows(norm_forward<T> a)
{
    const uint64_t row = (uint64_t)blockIdx.x * WARPS + threadIdx.x / GPU_LANES, channels = a.channels;
    const uint32_t lane = threadIdx.x % GPU_LANES;
    if (row >= a.rows) return;
    const uint64_t base = row * channels;
    float total = 0, squares = 0, v[GPU_EACH], w[GPU_EACH];
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        gpu_load8(a.x + base + c, a.aligned, channels - c, 0.0f, v);
        if (a.residual) {
            gpu_load8(a.residual + base + c, a.aligned, channels - c, 0.0f, w);
            for (int e = 0; e < GPU_EACH; e++) v[e] = gpu_widen(gpu_round<T>(v[e] + w[e]));
            gpu_store8(a.sum + base + c, a.aligned, channels - c, v);
        }
        for (int e = 0; e < GPU_EACH; e++) total += v[e];
    }
    const T *from = a.residual ? a.sum : a.x;
    const float mean = gpu_warp_sum(total) / (float)channels;
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        gpu_load8(from + base + c, a.aligned, channels - c, mean, v);
        for (int e = 0; e < GPU_EACH; e++) squares += (v[e] - mean) * (v[e] - mean);
    }
    const float rstd = 1.0f / sqrtf(gpu_warp_sum(squares) / (float)channels + a.epsilon);
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        float gamma[GPU_EACH];
        gpu_load8(from + base + c, a.aligned, channels - c, 0.0f, v);
        gpu_load8(a.gamma + c, a.aligned, channels - c, 0.0f, gamma);
        gpu_load8(a.beta + c, a.aligned, channels - c, 0.0f, w);
        for (int e = 0; e < GPU_EACH; e++) v[e] = (v[e] - mean) * rstd * gamma[e] + w[e];
        gpu_store8(a.y + base + c, a.aligned, channels - c, v);
    }
    if (lane) return;
    a.mean[row] = mean;
    a.rstd[row] = rstd;
}

static uint32_t row_blocks(uint64_t rows)
{
    return (uint32_t)((rows + WARPS - 1) / WARPS);
}

template <class T>
static sluice_status forward(sluice_stream *stream, uint64_t rows, uint64_t channels, const void *x,
                             const void *residual, void *sum, const void *gamma, const void *beta, float epsilon,
                             void *y, float *mean, float *rstd)
{
    const norm_forward<T> a = {rows,
                               channels,
                               (const T *)x,
                               (const T *)residual,
                               (const T *)gamma,
                               (const T *)beta,
                               (T *)sum,
                               (T *)y,
                               epsilon,
                               mean,
                               rstd,
                               channels % GPU_EACH == 0 && gpu_aligned(x) && gpu_aligned(residual) &&
                                   (!residual || gpu_aligned(sum)) && gpu_aligned(gamma) && gpu_aligned(beta) &&
                                   gpu_aligned(y)};
    if (!rows) return SLUICE_OK;
    GPU_START(normalise_rows<T>, dim3(row_blocks(rows)), dim3(WARPS * GPU_LANES), 0, slc_cuda_stream(stream), a);
    return slc_cuda_launched(stream, "layer_norm_forward");
}

sluice_status slc_layer_norm_forward_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t rows, uint64_t channels,
                                          const void *x, const void *residual, void *sum, const void *gamma,
                                          const void *beta, float epsilon, void *y, float *mean, float *rstd)
{
    return GPU_BY_TYPE(dtype, forward, stream, rows, channels, x, residual, sum, gamma, beta, epsilon, y, mean, rstd);
}

/* What is summed into dgamma, or with HAT false into dbeta. */
template <class T, bool HAT> struct norm_column {
    uint64_t channels;
    const T *dy, *x;
    const float *mean, *rstd;
    __device__ float operator()(uint64_t row, uint64_t column) const
    {
        const uint64_t at = row * channels + column;
        const float d = gpu_widen(dy[at]);
        return HAT ? d * ((gpu_widen(x[at]) - mean[row]) * rstd[row]) : d;
    }
};

template <class T> struct norm_backward {
    uint64_t rows, channels;
    const T *dy, *x, *gamma, *add; /* add may be NULL */
    const float *mean, *rstd;
    T *dx;
    bool aligned;
};

/* dx = rstd (dy gamma - mean(dy gamma) - xhat mean(dy gamma xhat)) + add */
template <class T>
static __global__ void __launch_bounds__(WARPS *GPU_LANES) normalise_rows_backward(norm_backward<T> a)
{
    const uint64_t row = (uint64_t)blockIdx.x * WARPS + threadIdx.x / GPU_LANES, channels = a.channels;
    const uint32_t lane = threadIdx.x % GPU_LANES;
    if (row >= a.rows) return;
    const uint64_t base = row * channels;
    const float mean = a.mean[row], rstd = a.rstd[row];
    float plain = 0, hat = 0, d[GPU_EACH], x[GPU_EACH], g[GPU_EACH];
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        gpu_load8(a.dy + base + c, a.aligned, channels - c, 0.0f, d);
        gpu_load8(a.x + base + c, a.aligned, channels - c, 0.0f, x);
        gpu_load8(a.gamma + c, a.aligned, channels - c, 0.0f, g);
        for (int e = 0; e < GPU_EACH; e++) {
            plain += d[e] * g[e];
            hat += d[e] * g[e] * ((x[e] - mean) * rstd);
        }
    }
    plain = gpu_warp_sum(plain) / (float)channels;
    hat = gpu_warp_sum(hat) / (float)channels;
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        float add[GPU_EACH] = {};
        gpu_load8(a.dy + base + c, a.aligned, channels - c, 0.0f, d);
        gpu_load8(a.x + base + c, a.aligned, channels - c, 0.0f, x);
        gpu_load8(a.gamma + c, a.aligned, channels - c, 0.0f, g);
        if (a.add) gpu_load8(a.add + base + c, a.aligned, channels - c, 0.0f, add);
        for (int e = 0; e < GPU_EACH; e++) {
            const float v = rstd * (d[e] * g[e] - plain - (x[e] - mean) * rstd * hat);
            x[e] = a.add ? v + add[e] : v;
        }
        gpu_store8(a.dx + base + c, a.aligned, channels - c, x);
    }
}

template <class T>
static sluice_status backward(sluice_stream *stream, sluice_dtype gradient, uint64_t rows, uint64_t channels,
                              const void *dy, const void *x, const void *gamma, const float *mean, const float *rstd,
                              const void *add, void *dx, void *dgamma, void *dbeta, bool fresh, float *workspace)
{
    const norm_column<T, true> to_gamma = {channels, (const T *)dy, (const T *)x, mean, rstd};
    const norm_column<T, false> to_beta = {channels, (const T *)dy, (const T *)x, mean, rstd};
    const norm_backward<T> a = {rows,
                                channels,
                                (const T *)dy,
                                (const T *)x,
                                (const T *)gamma,
                                (const T *)add,
                                mean,
                                rstd,
                                (T *)dx,
                                channels % GPU_EACH == 0 && gpu_aligned(dy) && gpu_aligned(x) && gpu_aligned(gamma) &&
                                    gpu_aligned(add) && gpu_aligned(dx)};
    sluice_status status = gpu_launch_column_sums(stream, "layer_norm_backward", rows, channels, to_gamma, workspace,
                                                  gradient, dgamma, fresh);
    if (!status)
        status = gpu_launch_column_sums(stream, "layer_norm_backward", rows, channels, to_beta, workspace, gradient,
                                        dbeta, fresh);
    if (status || !rows) return status;
    GPU_START(normalise_rows_backward<T>, dim3(row_blocks(rows)), dim3(WARPS * GPU_LANES), 0, slc_cuda_stream(stream),
              a);
    return slc_cuda_launched(stream, "layer_norm_backward");
}

sluice_status slc_layer_norm_backward_cuda(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient,
                                           uint64_t rows, uint64_t channels, const void *dy, const void *x,
                                           const void *gamma, const float *mean, const float *rstd, const void *dx_add,
                                           void *dx_out, void *dgamma, void *dbeta, int fresh, float *workspace)
{
    return GPU_BY_TYPE(dtype, backward, stream, gradient, rows, channels, dy, x, gamma, mean, rstd, dx_add, dx_out,
                       dgamma, dbeta, fresh != 0, workspace);
}

uint64_t slc_layer_norm_backward_cuda_bytes(uint64_t rows, uint64_t channels)
{
    return gpu_column_parts(rows) * channels * sizeof(float);
}
