/* Elements are cut between threads. */
#include "lib/kernels/sgd/sgd.h"

#include "lib/device/cuda.h"
#include "lib/kernels/host.h"

enum { GRAIN = 16384, UNIT = 16 };

sluice_status slc_sgd(sluice_stream *stream, const slc_sgd_args *args)
{
    if (SLC_ON_CUDA(stream)) return slc_sgd_cuda(stream, args);
    slc_sgd_args heeded = *args;
    sluice_status status = slc_host_check(stream, "sgd");
    if (status || (args->words && args->words->skip)) return status;
    if (args->words) heeded.gradient_factor = args->words->gradient_factor;
    slc_host_run(stream, args->count, GRAIN, UNIT, SLC_ISA_PICK(slc_sgd_range), &heeded);
    return SLUICE_OK;
}
