/* Picks the instruction set and cuts the elements between threads; if the type does not change it copies. */
#include "lib/kernels/convert/convert.h"

#include "lib/kernels/dispatch.h"

enum { GRAIN = 16384 };

static void convert_host(sluice_stream *stream, sluice_dtype from, const void *x, sluice_dtype to, void *y,
                         uint64_t count)
{
    const bool past_cache = slc_host_streams(y, count * sluice_dtype_bytes(to));
    const slc_convert_args args = {.from = from, .to = to, .x = x, .y = y, .stream = past_cache};
    slc_host_run(stream, count, GRAIN, 16, SLC_ISA_PICK(slc_convert_range), &args);
}

sluice_status slc_convert(sluice_stream *stream, sluice_dtype from, const void *x, sluice_dtype to, void *y,
                          uint64_t count)
{
    if (from != to) return SLC_DEVICE_RUN(stream, convert, from, x, to, y, count);
    return x == y ? SLUICE_OK : slc_copy(stream, y, x, count * sluice_dtype_bytes(to));
}
