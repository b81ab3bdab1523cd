/* Forward is cut between threads by elements, column sums by columns, so that the order of the rows is always the same.
 * Sums are kept in fp32 in the workspace and rounded once. */
#include "lib/kernels/residual/residual.h"

#include "lib/base/status.h"
#include "lib/device/cuda.h"
#include "lib/kernels/host.h"
#include "lib/kernels/residual/residual_cpu.h"
#include "lib/kernels/residual/residual_cuda.h"

enum { GRAIN = 8192, COLUMN_GRAIN = 128 };

static const slc_dropout *unless_zero(const slc_dropout *dropout)
{
    return dropout && dropout->probability > 0 ? dropout : NULL;
}

sluice_status slc_residual_forward(sluice_stream *stream, sluice_dtype dtype, uint64_t rows, uint64_t channels,
                                   const void *x, const void *bias, const slc_dropout *dropout, const void *scale,
                                   const void *residual, void *out)
{
    sluice_status status = slc_dropout_check(dropout, "residual_forward");
    if (status) return status;
    const uint64_t count = rows * channels, bytes = count * sluice_dtype_bytes(dtype);
    dropout = unless_zero(dropout);
    if (!bias && !dropout && !scale && !residual) return x == out ? SLUICE_OK : slc_copy(stream, out, x, bytes);
    if (SLC_ON_CUDA(stream))
        return slc_residual_forward_cuda(stream, dtype, rows, channels, x, bias, dropout, scale, residual, out);
    status = slc_host_check(stream, "residual_forward");
    if (status) return status;

    bool in_place = out == x || out == residual, whole_rows = channels % 16 == 0 || rows == 1;
    const slc_residual_forward_args args = {.dtype = dtype,
                                            .channels = channels,
                                            .x = x,
                                            .bias = bias,
                                            .scale = scale,
                                            .residual = residual,
                                            .dropout = dropout,
                                            .out = out,
                                            .stream = !in_place && whole_rows && slc_host_streams(out, bytes)};
    slc_host_run(stream, count, GRAIN, 16, SLC_ISA_PICK(slc_residual_forward_range), &args);
    return SLUICE_OK;
}

sluice_status slc_add(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *a, const void *b,
                      void *out)
{
    return slc_residual_forward(stream, dtype, 1, count, a, NULL, NULL, NULL, b, out);
}

sluice_status slc_dropout_apply(sluice_stream *stream, const slc_dropout *dropout, sluice_dtype dtype, uint64_t count,
                                const void *x, void *y)
{
    return slc_residual_forward(stream, dtype, 1, count, x, NULL, dropout, NULL, NULL, y);
}

uint64_t slc_residual_backward_workspace_bytes(const sluice_stream *stream, uint64_t rows, uint64_t channels)
{
    return SLC_ON_CUDA(stream) ? slc_column_sums_cuda_bytes(rows, channels) : channels * sizeof(float);
}

sluice_status slc_residual_backward(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t rows,
                                    uint64_t channels, const void *dout, const void *x, const void *bias,
                                    const slc_dropout *dropout, const void *scale, void *dx, void *dscale, int fresh,
                                    void *workspace)
{
    if (!scale) return slc_residual_forward(stream, dtype, rows, channels, dout, NULL, dropout, NULL, NULL, dx);
    sluice_status status = slc_dropout_check(dropout, "residual_backward");
    if (status) return status;
    if (SLC_ON_CUDA(stream))
        return slc_residual_backward_cuda(stream, dtype, gradient, rows, channels, dout, x, bias, dropout, scale, dx,
                                          dscale, fresh, workspace);
    status = slc_host_check(stream, "residual_backward");
    if (status) return status;
    const slc_residual_backward_args args = {.dtype = dtype,
                                             .rows = rows,
                                             .channels = channels,
                                             .dout = dout,
                                             .x = x,
                                             .bias = bias,
                                             .scale = scale,
                                             .dropout = unless_zero(dropout),
                                             .dx = dx,
                                             .sums = workspace};
    slc_host_run(stream, channels, COLUMN_GRAIN, 16, SLC_ISA_PICK(slc_residual_backward_range), &args);
    slc_host_add_sums(gradient, channels, args.sums, 1, 0, dscale, fresh);
    return SLUICE_OK;
}

uint64_t slc_bias_backward_workspace_bytes(const sluice_stream *stream, uint64_t rows, uint64_t columns)
{
    return SLC_ON_CUDA(stream) ? slc_column_sums_cuda_bytes(rows, columns) : columns * sizeof(float);
}

sluice_status slc_bias_backward(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t rows,
                                uint64_t columns, const void *dy, uint64_t stride, void *dbias, int fresh,
                                void *workspace)
{
    if (stride && stride < columns)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel bias_backward: rows of %llu columns lie %llu elements apart",
                         (unsigned long long)columns, (unsigned long long)stride);
    if (SLC_ON_CUDA(stream))
        return slc_bias_backward_cuda(stream, dtype, gradient, rows, columns, dy, stride ? stride : columns, dbias,
                                      fresh, workspace);
    sluice_status status = slc_host_check(stream, "bias_backward");
    if (status) return status;
    const slc_bias_args args = {
        .dtype = dtype, .rows = rows, .stride = stride ? stride : columns, .dy = dy, .sums = workspace};
    slc_host_run(stream, columns, COLUMN_GRAIN, 16, SLC_ISA_PICK(slc_bias_range), &args);
    slc_host_add_sums(gradient, columns, args.sums, 1, 0, dbias, fresh);
    return SLUICE_OK;
}
