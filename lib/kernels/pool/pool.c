/* Forward is cut between threads by sequences, backward by rows. */
#include "lib/kernels/pool/pool.h"

#include "lib/kernels/dispatch.h"

enum { GRAIN_ELEMENTS = 16384 };

static void pool_forward_host(sluice_stream *stream, const slc_pool_args *args)
{
    slc_host_run(stream, args->batch, 1 + GRAIN_ELEMENTS / (args->tokens * args->channels), 1,
                 SLC_ISA_PICK(slc_pool_forward_range), args);
}

sluice_status slc_pool_forward(sluice_stream *stream, const slc_pool_args *args)
{
    return args->channels ? SLC_DEVICE_RUN(stream, pool_forward, args) : SLUICE_OK;
}

static void pool_backward_host(sluice_stream *stream, const slc_pool_args *args)
{
    slc_host_run(stream, args->batch * args->tokens, 1 + GRAIN_ELEMENTS / args->channels, 1,
                 SLC_ISA_PICK(slc_pool_backward_range), args);
}

sluice_status slc_pool_backward(sluice_stream *stream, const slc_pool_args *args)
{
    return args->channels ? SLC_DEVICE_RUN(stream, pool_backward, args) : SLUICE_OK;
}
