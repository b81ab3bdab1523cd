/* Picks the instruction set and cuts the elements between threads. */
#include "lib/kernels/gelu/gelu.h"

#include "lib/kernels/dispatch.h"

enum { GRAIN = 8192 };

static void gelu_host(sluice_stream *stream, const slc_gelu_args *args)
{
    slc_host_run(stream, args->count, GRAIN, 16, SLC_ISA_PICK(slc_gelu_range), args);
}

static sluice_status gelu(sluice_stream *stream, slc_gelu_args args)
{
    return SLC_DEVICE_RUN(stream, gelu, &args);
}

sluice_status slc_gelu_forward(sluice_stream *stream, slc_gelu_kind kind, sluice_dtype dtype, uint64_t count,
                               const void *x, void *y)
{
    slc_gelu_function function = kind == SLC_GELU_ERF ? SLC_GELU_ERF_FORWARD : SLC_GELU_TANH_FORWARD;
    return gelu(stream, (slc_gelu_args){function, dtype, count, x, x, y});
}

sluice_status slc_gelu_backward(sluice_stream *stream, slc_gelu_kind kind, sluice_dtype dtype, uint64_t count,
                                const void *x, const void *dy, void *dx)
{
    slc_gelu_function function = kind == SLC_GELU_ERF ? SLC_GELU_ERF_BACKWARD : SLC_GELU_TANH_BACKWARD;
    return gelu(stream, (slc_gelu_args){function, dtype, count, x, dy, dx});
}

sluice_status slc_tanh_forward(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, void *y)
{
    return gelu(stream, (slc_gelu_args){SLC_TANH_FORWARD, dtype, count, x, x, y});
}

sluice_status slc_tanh_backward(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *y,
                                const void *dy, void *dx)
{
    return gelu(stream, (slc_gelu_args){SLC_TANH_BACKWARD, dtype, count, y, dy, dx});
}
