/* Rows are cut between threads. */
#include "lib/kernels/likeness/likeness.h"

#include "lib/kernels/dispatch.h"

enum { GRAIN_ELEMENTS = 16384 };

static void likeness_host(sluice_stream *stream, const slc_likeness_args *args)
{
    slc_host_run(stream, args->rows, 1 + GRAIN_ELEMENTS / args->channels, 1, SLC_ISA_PICK(slc_likeness_range), args);
}

sluice_status slc_likeness(sluice_stream *stream, const slc_likeness_args *args)
{
    return args->rows && args->channels ? SLC_DEVICE_RUN(stream, likeness, args) : SLUICE_OK;
}
