/* Forward is cut between threads by sequences, backward by rows. */
#include "lib/kernels/pool/pool.h"

#include "lib/device/cuda.h"
#include "lib/kernels/host.h"
#include "lib/kernels/pool/pool_cpu.h"
#include "lib/kernels/pool/pool_cuda.h"

enum { GRAIN_ELEMENTS = 16384 };

sluice_status slc_pool_forward(sluice_stream *stream, sluice_dtype dtype, slc_pool_kind kind, uint64_t batch,
                               uint64_t tokens, uint64_t channels, const void *x, void *y)
{
    if (SLC_ON_CUDA(stream)) return slc_pool_forward_cuda(stream, dtype, kind, batch, tokens, channels, x, y);
    sluice_status status = slc_host_check(stream, "pool_forward");
    if (status || !channels) return status;
    const slc_pool_args args = {
        .dtype = dtype, .kind = kind, .tokens = tokens, .channels = channels, .from = x, .to = y};
    slc_host_run(stream, batch, 1 + GRAIN_ELEMENTS / (tokens * channels), 1, SLC_ISA_PICK(slc_pool_forward_range),
                 &args);
    return SLUICE_OK;
}

sluice_status slc_pool_backward(sluice_stream *stream, sluice_dtype dtype, slc_pool_kind kind, uint64_t batch,
                                uint64_t tokens, uint64_t channels, const void *dy, void *dx)
{
    if (SLC_ON_CUDA(stream)) return slc_pool_backward_cuda(stream, dtype, kind, batch, tokens, channels, dy, dx);
    sluice_status status = slc_host_check(stream, "pool_backward");
    if (status || !channels) return status;
    const slc_pool_args args = {
        .dtype = dtype, .kind = kind, .tokens = tokens, .channels = channels, .from = dy, .to = dx};
    slc_host_run(stream, batch * tokens, 1 + GRAIN_ELEMENTS / channels, 1, SLC_ISA_PICK(slc_pool_backward_range),
                 &args);
    return SLUICE_OK;
}
