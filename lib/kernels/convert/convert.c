/* Picks the instruction set and cuts the elements between threads; if the type does not change it copies. */
#include "lib/kernels/convert/convert.h"

#include "lib/device/cuda.h"
#include "lib/kernels/convert/convert_cpu.h"
#include "lib/kernels/convert/convert_cuda.h"
#include "lib/kernels/host.h"

enum { GRAIN = 16384 };

sluice_status slc_convert(sluice_stream *stream, sluice_dtype from, const void *x, sluice_dtype to, void *y,
                          uint64_t count)
{
    uint64_t bytes = count * sluice_dtype_bytes(to);
    if (from == to) return x == y ? SLUICE_OK : slc_copy(stream, y, x, bytes);
    if (SLC_ON_CUDA(stream)) return slc_convert_cuda(stream, from, x, y, count);
    sluice_status status = slc_host_check(stream, "convert");
    if (status) return status;
    const slc_convert_args args = {.from = from, .to = to, .x = x, .y = y, .stream = slc_host_streams(y, bytes)};
    slc_host_run(stream, count, GRAIN, 16, SLC_ISA_PICK(slc_convert_range), &args);
    return SLUICE_OK;
}
