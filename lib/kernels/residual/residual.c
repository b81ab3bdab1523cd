/* Additions are cut between threads by elements, column sums by columns: the order of the rows is always the same. */
#include "lib/kernels/residual/residual.h"

#include "lib/kernels/host.h"
#include "lib/kernels/residual/residual_cpu.h"

enum { ADD_GRAIN = 16384, COLUMN_GRAIN = 128 };

sluice_status slc_add(slc_stream *stream, uint64_t count, const float *a, const float *b, float *out)
{
    sluice_status status = slc_host_check(stream, "add");
    if (status) return status;
    slc_add_args args = {.a = a, .b = b, .out = out};
    slc_host_run(stream, count, ADD_GRAIN, 16, SLC_ISA_PICK(slc_add_range), &args);
    return SLUICE_OK;
}

uint64_t slc_bias_backward_workspace_bytes(const slc_stream *stream, uint64_t rows, uint64_t columns)
{
    (void)stream, (void)rows, (void)columns;
    return 0;
}

sluice_status slc_bias_backward(slc_stream *stream, uint64_t rows, uint64_t columns, const float *dy, float *dbias,
                                int fresh, void *workspace)
{
    (void)workspace;
    sluice_status status = slc_host_check(stream, "bias_backward");
    if (status) return status;
    slc_bias_args args = {.rows = rows, .columns = columns, .dy = dy, .dbias = dbias, .fresh = fresh};
    slc_host_run(stream, columns, COLUMN_GRAIN, 16, SLC_ISA_PICK(slc_bias_range), &args);
    return SLUICE_OK;
}
