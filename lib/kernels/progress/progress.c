/* tests/cuda_emulated/failed_step_test.c covers this file. */
#include "lib/kernels/progress/progress.h"

#include "lib/kernels/dispatch.h"

static void progress_host(sluice_stream *stream, uint64_t *word, uint64_t number)
{
    (void)stream;
    *word = number;
}

sluice_status slc_progress(sluice_stream *stream, uint64_t *word, uint64_t number)
{
    return SLC_DEVICE_RUN(stream, progress, word, number);
}
