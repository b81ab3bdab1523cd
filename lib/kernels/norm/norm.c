/* Norms: from grains to bins, and bins packed into fewer words. */
#include "lib/kernels/norm/norm.h"

#include "lib/kernels/dispatch.h"
#include "lib/kernels/norm/norm_result.h"

enum { GRAIN_ELEMENTS = 32768 };

static void norm_add_host(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, int64_t *bins)
{
    slc_norm_args args = {.dtype = dtype, .x = x, .count = count, .bins = bins};
    uint64_t grains = (count + SLC_NORM_GRAIN - 1) / SLC_NORM_GRAIN;
    slc_host_run(stream, grains, GRAIN_ELEMENTS / SLC_NORM_GRAIN, 1, SLC_ISA_PICK(slc_norm_range), &args);
}

sluice_status slc_norm_add(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, int64_t *bins)
{
    return SLC_DEVICE_RUN(stream, norm_add, dtype, count, x, bins);
}

static void all_finite_host(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, bool *finite)
{
    slc_finite_args args = {.dtype = dtype, .x = x, .finite = finite};
    slc_host_run(stream, count, GRAIN_ELEMENTS, 16, SLC_ISA_PICK(slc_finite_range), &args);
}

sluice_status slc_all_finite(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, bool *finite)
{
    return SLC_DEVICE_RUN(stream, all_finite, dtype, count, x, finite);
}

void slc_norm_pack(const int64_t *bins, int64_t *words)
{
    norm_pack(bins, words);
}

void slc_norm_unpack(const int64_t *words, int64_t *bins)
{
    norm_unpack(words, bins);
}

double slc_norm_result(const int64_t *bins)
{
    return norm_result(bins);
}
