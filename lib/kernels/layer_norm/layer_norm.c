/* Rows are cut between threads; the threads' column sums are joined in their order. */
#include "lib/kernels/layer_norm/layer_norm.h"

#include "lib/kernels/host.h"
#include "lib/kernels/layer_norm/layer_norm_cpu.h"

enum { GRAIN_ELEMENTS = 8192 };

static uint64_t grain_rows(uint64_t channels)
{
    return 1 + GRAIN_ELEMENTS / (channels ? channels : 1);
}

sluice_status slc_layer_norm_forward(slc_stream *stream, uint64_t rows, uint64_t channels, const float *x,
                                     const float *residual, float *sum, const float *gamma, const float *beta,
                                     float epsilon, float *y, float *mean, float *rstd)
{
    sluice_status status = slc_host_check(stream, "layer_norm_forward");
    if (status) return status;
    slc_layer_norm_forward_args args = {.channels = channels,
                                        .x = x,
                                        .residual = residual,
                                        .gamma = gamma,
                                        .beta = beta,
                                        .epsilon = epsilon,
                                        .sum = sum,
                                        .y = y,
                                        .mean = mean,
                                        .rstd = rstd};
    slc_host_run(stream, rows, grain_rows(channels), 1, SLC_ISA_PICK(slc_layer_norm_forward_range), &args);
    return SLUICE_OK;
}

uint64_t slc_layer_norm_backward_workspace_bytes(const slc_stream *stream, uint64_t rows, uint64_t channels)
{
    return (uint64_t)slc_host_parts(stream, rows, grain_rows(channels)) * 2 * channels * sizeof(float);
}

sluice_status slc_layer_norm_backward(slc_stream *stream, uint64_t rows, uint64_t channels, const float *dy,
                                      const float *x, const float *gamma, const float *mean, const float *rstd,
                                      const float *dx_add, float *dx_out, float *dgamma, float *dbeta, int fresh,
                                      void *workspace)
{
    sluice_status status = slc_host_check(stream, "layer_norm_backward");
    if (status) return status;
    slc_layer_norm_backward_args args = {.channels = channels,
                                         .dy = dy,
                                         .x = x,
                                         .gamma = gamma,
                                         .mean = mean,
                                         .rstd = rstd,
                                         .dx_add = dx_add,
                                         .dx_out = dx_out,
                                         .partials = workspace};
    slc_host_run(stream, rows, grain_rows(channels), 1, SLC_ISA_PICK(slc_layer_norm_backward_range), &args);

    uint32_t parts = slc_host_parts(stream, rows, grain_rows(channels));
    for (uint64_t c = 0; c < channels; c++) {
        float gamma_sum = args.partials[c], beta_sum = args.partials[channels + c];
        for (uint32_t part = 1; part < parts; part++) {
            gamma_sum += args.partials[(uint64_t)part * 2 * channels + c];
            beta_sum += args.partials[((uint64_t)part * 2 + 1) * channels + c];
        }
        dgamma[c] = fresh ? gamma_sum : dgamma[c] + gamma_sum;
        dbeta[c] = fresh ? beta_sum : dbeta[c] + beta_sum;
    }
    return SLUICE_OK;
}
