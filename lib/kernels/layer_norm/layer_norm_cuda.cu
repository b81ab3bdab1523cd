/* A warp takes a row, eight elements a lane at a time; the row is read again from the cache for each pass. Backward
 * sums the columns first, because dx may replace dy. */
#include "lib/kernels/layer_norm/layer_norm.h"

#include "lib/kernels/gpu_sums.cuh"

enum { WARPS = 8, STEP = GPU_LANES * GPU_EACH };

/* aligned: all arrays, and rows. */
template <class T>
static __global__ void __launch_bounds__(WARPS *GPU_LANES) normalise_rows(slc_layer_norm_forward_args a, bool aligned)
{
    const uint64_t row = (uint64_t)blockIdx.x * WARPS + threadIdx.x / GPU_LANES, channels = a.channels;
    const uint32_t lane = threadIdx.x % GPU_LANES;
    if (row >= a.rows) return;
    const uint64_t base = row * channels;
    const T *const x = (const T *)a.x, *const residual = (const T *)a.residual;
    T *const sum = (T *)a.sum;
    float total = 0, squares = 0, v[GPU_EACH], w[GPU_EACH];
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        gpu_load8(x + base + c, aligned, channels - c, 0.0f, v);
        if (residual) {
            gpu_load8(residual + base + c, aligned, channels - c, 0.0f, w);
            for (int e = 0; e < GPU_EACH; e++) v[e] = gpu_widen(gpu_round<T>(v[e] + w[e]));
            gpu_store8(sum + base + c, aligned, channels - c, v);
        }
        for (int e = 0; e < GPU_EACH; e++) total += v[e];
    }
    const T *const from = residual ? sum : x;
    const float mean = gpu_warp_sum(total) / (float)channels;
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        gpu_load8(from + base + c, aligned, channels - c, mean, v);
        for (int e = 0; e < GPU_EACH; e++) squares += (v[e] - mean) * (v[e] - mean);
    }
    const float rstd = 1.0f / sqrtf(gpu_warp_sum(squares) / (float)channels + (float)a.epsilon);
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        float gamma[GPU_EACH];
        gpu_load8(from + base + c, aligned, channels - c, 0.0f, v);
        gpu_load8((const T *)a.gamma + c, aligned, channels - c, 0.0f, gamma);
        gpu_load8((const T *)a.beta + c, aligned, channels - c, 0.0f, w);
        for (int e = 0; e < GPU_EACH; e++) v[e] = (v[e] - mean) * rstd * gamma[e] + w[e];
        gpu_store8((T *)a.y + base + c, aligned, channels - c, v);
    }
    if (lane) return;
    ((float *)a.mean)[row] = mean;
    ((float *)a.rstd)[row] = rstd;
}

static uint32_t row_blocks(uint64_t rows)
{
    return (uint32_t)((rows + WARPS - 1) / WARPS);
}

template <class T> static sluice_status forward(sluice_stream *stream, const slc_layer_norm_forward_args *a)
{
    const bool aligned = a->channels % GPU_EACH == 0 && gpu_aligned(a->x) && gpu_aligned(a->residual) &&
                         (!a->residual || gpu_aligned(a->sum)) && gpu_aligned(a->gamma) && gpu_aligned(a->beta) &&
                         gpu_aligned(a->y);
    if (!a->rows) return SLUICE_OK;
    GPU_START(normalise_rows<T>, dim3(row_blocks(a->rows)), dim3(WARPS * GPU_LANES), 0, slc_cuda_stream(stream), *a,
              aligned);
    return slc_cuda_launched(stream, "layer_norm_forward");
}

GPU_KERNEL(slc_layer_norm_forward, slc_layer_norm_forward_args, dtype, forward)

/* Gives one row's term of the sum in dgamma, or, with HAT false, of the sum in dbeta. */
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

/* dx = rstd (dy gamma - mean(dy gamma) - xhat mean(dy gamma xhat)) + add */
template <class T>
static __global__ void __launch_bounds__(WARPS *GPU_LANES)
    normalise_rows_backward(slc_layer_norm_backward_args a, bool aligned)
{
    const uint64_t row = (uint64_t)blockIdx.x * WARPS + threadIdx.x / GPU_LANES, channels = a.channels;
    const uint32_t lane = threadIdx.x % GPU_LANES;
    if (row >= a.rows) return;
    const uint64_t base = row * channels;
    const float mean = ((const float *)a.mean)[row], rstd = ((const float *)a.rstd)[row];
    float plain = 0, hat = 0, d[GPU_EACH], x[GPU_EACH], g[GPU_EACH];
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        gpu_load8((const T *)a.dy + base + c, aligned, channels - c, 0.0f, d);
        gpu_load8((const T *)a.x + base + c, aligned, channels - c, 0.0f, x);
        gpu_load8((const T *)a.gamma + c, aligned, channels - c, 0.0f, g);
        for (int e = 0; e < GPU_EACH; e++) {
            plain += d[e] * g[e];
            hat += d[e] * g[e] * ((x[e] - mean) * rstd);
        }
    }
    plain = gpu_warp_sum(plain) / (float)channels;
    hat = gpu_warp_sum(hat) / (float)channels;
    for (uint64_t c = lane * GPU_EACH; c < channels; c += STEP) {
        float add[GPU_EACH] = {};
        gpu_load8((const T *)a.dy + base + c, aligned, channels - c, 0.0f, d);
        gpu_load8((const T *)a.x + base + c, aligned, channels - c, 0.0f, x);
        gpu_load8((const T *)a.gamma + c, aligned, channels - c, 0.0f, g);
        if (a.dx_add) gpu_load8((const T *)a.dx_add + base + c, aligned, channels - c, 0.0f, add);
        for (int e = 0; e < GPU_EACH; e++) {
            const float v = rstd * (d[e] * g[e] - plain - (x[e] - mean) * rstd * hat);
            x[e] = a.dx_add ? v + add[e] : v;
        }
        gpu_store8((T *)a.dx + base + c, aligned, channels - c, x);
    }
}

template <class T> static sluice_status backward(sluice_stream *stream, const slc_layer_norm_backward_args *a)
{
    const T *dy = (const T *)a->dy, *x = (const T *)a->x;
    const float *mean = (const float *)a->mean, *rstd = (const float *)a->rstd;
    const norm_column<T, true> to_gamma = {a->channels, dy, x, mean, rstd};
    const norm_column<T, false> to_beta = {a->channels, dy, x, mean, rstd};
    const bool aligned = a->channels % GPU_EACH == 0 && gpu_aligned(dy) && gpu_aligned(x) && gpu_aligned(a->gamma) &&
                         gpu_aligned(a->dx_add) && gpu_aligned(a->dx);
    gpu_columns sums = {"layer_norm_backward", a->rows, a->channels, a->gradient, a->dgamma, a->fresh, a->workspace};
    sluice_status status = gpu_launch_column_sums(stream, sums, to_gamma);
    sums.to = a->dbeta;
    if (!status) status = gpu_launch_column_sums(stream, sums, to_beta);
    if (status || !a->rows) return status;
    GPU_START(normalise_rows_backward<T>, dim3(row_blocks(a->rows)), dim3(WARPS * GPU_LANES), 0,
              slc_cuda_stream(stream), *a, aligned);
    return slc_cuda_launched(stream, "layer_norm_backward");
}

GPU_KERNEL(slc_layer_norm_backward, slc_layer_norm_backward_args, dtype, backward)

uint64_t slc_layer_norm_backward_workspace_bytes_cuda(const sluice_stream *, uint64_t rows, uint64_t channels)
{
    return gpu_column_parts(rows) * channels * sizeof(float);
}
