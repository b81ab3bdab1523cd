#include "lib/kernels/progress/progress.h"

#include "lib/device/cuda.h"
#include "lib/kernels/host.h"
#include "lib/kernels/progress/progress_cuda.h"

sluice_status slc_progress(sluice_stream *stream, uint64_t *word, uint64_t number)
{
    if (SLC_ON_CUDA(stream)) return slc_progress_cuda(stream, word, number);
    sluice_status status = slc_host_check(stream, "progress");
    if (!status) *word = number;
    return status;
}
