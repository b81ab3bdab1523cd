/* Forward is cut between threads by elements, column sums by columns, so that the order of the rows is always the same.
 * Sums are kept in fp32 in the workspace and rounded once. */
#include "lib/kernels/residual/residual.h"

#include "lib/base/status.h"
#include "lib/kernels/dispatch.h"

enum { GRAIN = 8192, COLUMN_GRAIN = 128 };

static const slc_dropout *unless_zero(const slc_dropout *dropout)
{
    return dropout && dropout->probability > 0 ? dropout : NULL;
}

/* Sets *path to NULL if it drops nothing. */
static sluice_status check_path(const slc_drop_path **path, const char *kernel)
{
    if (!*path) return SLUICE_OK;
    sluice_status status = slc_dropout_check(&(*path)->draw, kernel);
    if (!status && !((*path)->draw.probability > 0)) *path = NULL;
    if (status || !*path || (*path)->rows) return status;
    return slc_error(SLUICE_ERR_ARGUMENT, "kernel %s: branches are dropped by sequence, and a sequence has no rows",
                     kernel);
}

static float unless_none(float factor)
{
    return factor != 0 ? factor : 1;
}

static void residual_forward_host(sluice_stream *stream, const slc_residual_forward_args *args)
{
    slc_host_run(stream, args->rows * args->channels, GRAIN, 16, SLC_ISA_PICK(slc_residual_forward_range), args);
}

sluice_status slc_residual_forward(sluice_stream *stream, const slc_residual_forward_args *args)
{
    sluice_status status = slc_dropout_check(args->dropout, "residual_forward");
    slc_residual_forward_args a = *args;
    a.dropout = unless_zero(args->dropout);
    a.factor = unless_none(args->factor);
    if (!status) status = check_path(&a.path, "residual_forward");
    if (status) return status;
    if (!a.bias && !a.dropout && !a.scale && !a.residual && !a.path && a.factor == 1)
        return a.x == a.out ? SLUICE_OK
                            : slc_copy(stream, a.out, a.x, a.rows * a.channels * sluice_dtype_bytes(a.dtype));
    return SLC_DEVICE_RUN(stream, residual_forward, &a);
}

sluice_status slc_dropout_apply(sluice_stream *stream, const slc_dropout *dropout, sluice_dtype dtype, uint64_t count,
                                const void *x, void *y)
{
    const slc_residual_forward_args args = {
        .dtype = dtype, .rows = 1, .channels = count, .x = x, .dropout = dropout, .out = y};
    return slc_residual_forward(stream, &args);
}

static void residual_backward_host(sluice_stream *stream, const slc_residual_backward_args *args)
{
    slc_host_run(stream, args->channels, COLUMN_GRAIN, 16, SLC_ISA_PICK(slc_residual_backward_range), args);
    slc_host_add_sums(args->gradient, args->channels, args->workspace, 1, 0, args->dscale, args->fresh);
}

sluice_status slc_residual_backward(sluice_stream *stream, const slc_residual_backward_args *args)
{
    slc_residual_backward_args a = *args;
    if (!a.scale) {
        const slc_residual_forward_args alone = {.dtype = a.dtype,
                                                 .rows = a.rows,
                                                 .channels = a.channels,
                                                 .x = a.dout,
                                                 .dropout = a.dropout,
                                                 .out = a.dx,
                                                 .path = a.path,
                                                 .factor = a.factor};
        return slc_residual_forward(stream, &alone);
    }
    sluice_status status = slc_dropout_check(a.dropout, "residual_backward");
    a.dropout = unless_zero(a.dropout);
    a.factor = unless_none(a.factor);
    if (!status) status = check_path(&a.path, "residual_backward");
    return status ? status : SLC_DEVICE_RUN(stream, residual_backward, &a);
}

uint64_t slc_residual_backward_workspace_bytes(const sluice_stream *stream, uint64_t rows, uint64_t channels)
{
    return slc_bias_backward_workspace_bytes(stream, rows, channels);
}

static void bias_backward_host(sluice_stream *stream, const slc_bias_backward_args *args)
{
    slc_host_run(stream, args->columns, COLUMN_GRAIN, 16, SLC_ISA_PICK(slc_bias_backward_range), args);
    slc_host_add_sums(args->gradient, args->columns, args->workspace, 1, 0, args->dbias, args->fresh);
}

sluice_status slc_bias_backward(sluice_stream *stream, const slc_bias_backward_args *args)
{
    slc_bias_backward_args a = *args;
    if (!a.stride) a.stride = a.columns;
    a.factor = unless_none(a.factor);
    if (a.stride < a.columns)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel bias_backward: rows of %llu columns lie %llu elements apart",
                         (unsigned long long)a.columns, (unsigned long long)a.stride);
    return SLC_DEVICE_RUN(stream, bias_backward, &a);
}

static uint64_t bias_backward_workspace_bytes_host(const sluice_stream *stream, uint64_t rows, uint64_t columns)
{
    (void)stream, (void)rows;
    return columns * sizeof(float);
}

uint64_t slc_bias_backward_workspace_bytes(const sluice_stream *stream, uint64_t rows, uint64_t columns)
{
    return SLC_DEVICE_PICK(stream, bias_backward_workspace_bytes)(stream, rows, columns);
}
