/* Hands the rows to the GPU, or cuts them between the host's threads. */
#include "lib/kernels/cross_entropy/cross_entropy.h"

#include "lib/kernels/dispatch.h"

static void cross_entropy_host(sluice_stream *stream, const slc_cross_entropy_args *args)
{
    slc_host_run(stream, args->rows, 1, 1, SLC_ISA_PICK(slc_cross_entropy_range), args);
}

sluice_status slc_cross_entropy(sluice_stream *stream, const slc_cross_entropy_args *args)
{
    return SLC_DEVICE_RUN(stream, cross_entropy, args);
}
