/* Picks the loop. */
#include "lib/kernels/copy/copy.h"

#include "lib/device/cuda.h"
#include "lib/kernels/host.h"

enum { GRAIN = 128 << 10 };

sluice_status slc_copy_past_cache(sluice_stream *stream, void *dst, const void *src, uint64_t bytes)
{
    if (SLC_ON_CUDA(stream)) return slc_copy(stream, dst, src, bytes);
    sluice_status status = slc_host_check(stream, "copy");
    const slc_copy_args args = {.dst = dst, .src = src};
    if (!status) slc_host_run(stream, bytes, GRAIN, 64, SLC_ISA_PICK(slc_copy_range), &args);
    return status;
}
