/* Rows are cut between threads; the threads' column sums are joined in their order. */
#include "lib/kernels/layer_norm/layer_norm.h"

#include "lib/kernels/dispatch.h"

enum { GRAIN_ELEMENTS = 8192 };

static uint64_t grain_rows(uint64_t channels)
{
    return 1 + GRAIN_ELEMENTS / (channels ? channels : 1);
}

static void layer_norm_forward_host(sluice_stream *stream, const slc_layer_norm_forward_args *args)
{
    slc_host_run(stream, args->rows, grain_rows(args->channels), 1, SLC_ISA_PICK(slc_layer_norm_forward_range), args);
}

sluice_status slc_layer_norm_forward(sluice_stream *stream, const slc_layer_norm_forward_args *args)
{
    return SLC_DEVICE_RUN(stream, layer_norm_forward, args);
}

static uint64_t layer_norm_backward_workspace_bytes_host(const sluice_stream *stream, uint64_t rows, uint64_t channels)
{
    return (uint64_t)slc_host_parts(stream, rows, grain_rows(channels)) * 2 * channels * sizeof(float);
}

uint64_t slc_layer_norm_backward_workspace_bytes(const sluice_stream *stream, uint64_t rows, uint64_t channels)
{
    return SLC_DEVICE_PICK(stream, layer_norm_backward_workspace_bytes)(stream, rows, channels);
}

static void layer_norm_backward_host(sluice_stream *stream, const slc_layer_norm_backward_args *args)
{
    const uint64_t channels = args->channels, grain = grain_rows(channels);
    const uint32_t parts = slc_host_parts(stream, args->rows, grain);
    const float *sums = args->workspace;
    slc_host_run(stream, args->rows, grain, 1, SLC_ISA_PICK(slc_layer_norm_backward_range), args);
    slc_host_add_sums(args->gradient, channels, sums, parts, 2 * channels, args->dgamma, args->fresh);
    slc_host_add_sums(args->gradient, channels, sums + channels, parts, 2 * channels, args->dbeta, args->fresh);
}

sluice_status slc_layer_norm_backward(sluice_stream *stream, const slc_layer_norm_backward_args *args)
{
    return SLC_DEVICE_RUN(stream, layer_norm_backward, args);
}
