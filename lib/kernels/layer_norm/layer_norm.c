/* Rows are cut between threads; the threads' column sums are joined in their order. */
#include "lib/kernels/layer_norm/layer_norm.h"

#include "lib/device/cuda.h"
#include "lib/kernels/host.h"
#include "lib/kernels/layer_norm/layer_norm_cpu.h"
#include "lib/kernels/layer_norm/layer_norm_cuda.h"

enum { GRAIN_ELEMENTS = 8192 };

static uint64_t grain_rows(uint64_t channels)
{
    return 1 + GRAIN_ELEMENTS / (channels ? channels : 1);
}

static bool streams(sluice_dtype dtype, uint64_t rows, uint64_t channels, const void *out)
{
    return channels % 16 == 0 && slc_host_streams(out, rows * channels * sluice_dtype_bytes(dtype));
}

sluice_status slc_layer_norm_forward(sluice_stream *stream, sluice_dtype dtype, uint64_t rows, uint64_t channels,
                                     const void *x, const void *residual, void *sum, const void *gamma,
                                     const void *beta, float epsilon, void *y, float *mean, float *rstd)
{
    if (SLC_ON_CUDA(stream))
        return slc_layer_norm_forward_cuda(stream, dtype, rows, channels, x, residual, sum, gamma, beta, epsilon, y,
                                           mean, rstd);
    sluice_status status = slc_host_check(stream, "layer_norm_forward");
    if (status) return status;
    const slc_layer_norm_forward_args args = {.dtype = dtype,
                                              .channels = channels,
                                              .x = x,
                                              .residual = residual,
                                              .gamma = gamma,
                                              .beta = beta,
                                              .epsilon = epsilon,
                                              .sum = sum,
                                              .y = y,
                                              .mean = mean,
                                              .rstd = rstd,
                                              .stream_sum = residual && sum != x && sum != residual &&
                                                            streams(dtype, rows, channels, sum),
                                              .stream_y = y != x && y != residual && streams(dtype, rows, channels, y)};
    slc_host_run(stream, rows, grain_rows(channels), 1, SLC_ISA_PICK(slc_layer_norm_forward_range), &args);
    return SLUICE_OK;
}

uint64_t slc_layer_norm_backward_workspace_bytes(const sluice_stream *stream, uint64_t rows, uint64_t channels)
{
    if (SLC_ON_CUDA(stream)) return slc_layer_norm_backward_cuda_bytes(rows, channels);
    return (uint64_t)slc_host_parts(stream, rows, grain_rows(channels)) * 2 * channels * sizeof(float);
}

sluice_status slc_layer_norm_backward(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t rows,
                                      uint64_t channels, const void *dy, const void *x, const void *gamma,
                                      const float *mean, const float *rstd, const void *dx_add, void *dx_out,
                                      void *dgamma, void *dbeta, int fresh, void *workspace)
{
    if (SLC_ON_CUDA(stream))
        return slc_layer_norm_backward_cuda(stream, dtype, gradient, rows, channels, dy, x, gamma, mean, rstd, dx_add,
                                            dx_out, dgamma, dbeta, fresh, workspace);
    sluice_status status = slc_host_check(stream, "layer_norm_backward");
    if (status) return status;
    const slc_layer_norm_backward_args args = {.dtype = dtype,
                                               .channels = channels,
                                               .dy = dy,
                                               .x = x,
                                               .gamma = gamma,
                                               .mean = mean,
                                               .rstd = rstd,
                                               .dx_add = dx_add,
                                               .dx_out = dx_out,
                                               .partials = workspace,
                                               .stream = dx_out != dx_add && dx_out != dy && dx_out != x &&
                                                         streams(dtype, rows, channels, dx_out)};
    slc_host_run(stream, rows, grain_rows(channels), 1, SLC_ISA_PICK(slc_layer_norm_backward_range), &args);

    uint32_t parts = slc_host_parts(stream, rows, grain_rows(channels));
    slc_host_add_sums(gradient, channels, args.partials, parts, 2 * channels, dgamma, fresh);
    slc_host_add_sums(gradient, channels, args.partials + channels, parts, 2 * channels, dbeta, fresh);
    return SLUICE_OK;
}
