/* Picks the instruction set and cuts the elements between threads. */
#include "lib/kernels/gelu/gelu.h"

#include "lib/kernels/gelu/gelu_cpu.h"
#include "lib/kernels/host.h"

enum { GRAIN = 8192 };

static sluice_status run(slc_stream *stream, uint64_t count, const float *x, const float *dy, float *out)
{
    sluice_status status = slc_host_check(stream, "gelu");
    if (status) return status;
    slc_gelu_args args = {.x = x, .dy = dy, .out = out};
    slc_host_run(stream, count, GRAIN, 16, SLC_ISA_PICK(slc_gelu_range), &args);
    return SLUICE_OK;
}

sluice_status slc_gelu_forward(slc_stream *stream, uint64_t count, const float *x, float *y)
{
    return run(stream, count, x, NULL, y);
}

sluice_status slc_gelu_backward(slc_stream *stream, uint64_t count, const float *x, const float *dy, float *dx)
{
    return run(stream, count, x, dy, dx);
}
