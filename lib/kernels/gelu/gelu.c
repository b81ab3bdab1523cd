/* Picks the instruction set and cuts the elements between threads. */
#include "lib/kernels/gelu/gelu.h"

#include "lib/device/cuda.h"
#include "lib/kernels/gelu/gelu_cpu.h"
#include "lib/kernels/gelu/gelu_cuda.h"
#include "lib/kernels/host.h"

enum { GRAIN = 8192 };

static sluice_status run(sluice_stream *stream, slc_gelu_function function, sluice_dtype dtype, uint64_t count,
                         const void *x, const void *dy, void *out)
{
    if (SLC_ON_CUDA(stream)) return slc_gelu_cuda(stream, function, dtype, count, x, dy, out);
    sluice_status status = slc_host_check(stream, "gelu");
    if (status) return status;
    bool in_place = out == x || out == dy;
    const slc_gelu_args args = {.function = function,
                                .dtype = dtype,
                                .x = x,
                                .dy = dy,
                                .out = out,
                                .stream = !in_place && slc_host_streams(out, count * sluice_dtype_bytes(dtype))};
    slc_host_run(stream, count, GRAIN, 16, SLC_ISA_PICK(slc_gelu_range), &args);
    return SLUICE_OK;
}

sluice_status slc_gelu_forward(sluice_stream *stream, slc_gelu_kind kind, sluice_dtype dtype, uint64_t count,
                               const void *x, void *y)
{
    slc_gelu_function function = kind == SLC_GELU_ERF ? SLC_GELU_ERF_FORWARD : SLC_GELU_TANH_FORWARD;
    return run(stream, function, dtype, count, x, x, y);
}

sluice_status slc_gelu_backward(sluice_stream *stream, slc_gelu_kind kind, sluice_dtype dtype, uint64_t count,
                                const void *x, const void *dy, void *dx)
{
    slc_gelu_function function = kind == SLC_GELU_ERF ? SLC_GELU_ERF_BACKWARD : SLC_GELU_TANH_BACKWARD;
    return run(stream, function, dtype, count, x, dy, dx);
}

sluice_status slc_tanh_forward(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, void *y)
{
    return run(stream, SLC_TANH_FORWARD, dtype, count, x, x, y);
}

sluice_status slc_tanh_backward(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *y,
                                const void *dy, void *dx)
{
    return run(stream, SLC_TANH_BACKWARD, dtype, count, y, dy, dx);
}
