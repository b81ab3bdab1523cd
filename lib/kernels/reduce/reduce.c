/* Picks the loop; the small int64 and float64 reductions are plain loops here. */
#include "lib/kernels/reduce/reduce.h"

#include "lib/base/status.h"
#include "lib/device/cuda.h"
#include "lib/kernels/host.h"
#include "lib/kernels/reduce/reduce_cpu.h"
#include "lib/kernels/reduce/reduce_cuda.h"

enum { GRAIN = 32768 };

static sluice_status check(const sluice_stream *stream, uint32_t source_count, uint32_t destination_count)
{
    if (source_count == 0 || destination_count == 0)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel reduce: %u sources, %u destinations; at least one of each",
                         source_count, destination_count);
    if (!SLC_ON_CUDA(stream)) return slc_host_check(stream, "reduce");
    if (source_count <= SLC_REDUCE_CUDA_MOST && destination_count <= SLC_REDUCE_CUDA_MOST) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "kernel reduce: %u sources, %u destinations; at most %d on a GPU",
                     source_count, destination_count, SLC_REDUCE_CUDA_MOST);
}

sluice_status slc_reduce(sluice_stream *stream, uint64_t count, sluice_dtype from, const void *const *sources,
                         uint32_t source_count, float scale, bool accumulate, sluice_dtype to,
                         void *const *destinations, uint32_t destination_count, bool stream_stores)
{
    sluice_status status = check(stream, source_count, destination_count);
    if (status) return status;
    if (accumulate && destination_count != 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel reduce: accumulates into one destination, not %u",
                         destination_count);
    if (SLC_ON_CUDA(stream))
        return slc_reduce_cuda(stream, count, from, sources, source_count, scale, accumulate, to, destinations,
                               destination_count);
    slc_reduce_args args = {.from = from,
                            .to = to,
                            .sources = sources,
                            .destinations = destinations,
                            .source_count = source_count,
                            .destination_count = destination_count,
                            .scale = scale,
                            .accumulate = accumulate,
                            .stream = stream_stores && destination_count == 1};
    slc_host_run(stream, count, GRAIN, 16, SLC_ISA_PICK(slc_reduce_range), &args);
    return SLUICE_OK;
}

sluice_status slc_reduce_int64(sluice_stream *stream, uint64_t count, const int64_t *const *sources,
                               uint32_t source_count, int64_t *const *destinations, uint32_t destination_count)
{
    sluice_status status = check(stream, source_count, destination_count);
    if (status) return status;
    if (SLC_ON_CUDA(stream))
        return slc_reduce_int64_cuda(stream, count, sources, source_count, destinations, destination_count);
    for (uint64_t i = 0; i < count; i++) {
        int64_t sum = sources[0][i];
        for (uint32_t s = 1; s < source_count; s++) sum += sources[s][i];
        for (uint32_t d = 0; d < destination_count; d++) destinations[d][i] = sum;
    }
    return SLUICE_OK;
}

sluice_status slc_reduce_float64(sluice_stream *stream, uint64_t count, const double *const *sources,
                                 uint32_t source_count, double *const *destinations, uint32_t destination_count)
{
    sluice_status status = check(stream, source_count, destination_count);
    if (status) return status;
    if (SLC_ON_CUDA(stream))
        return slc_reduce_float64_cuda(stream, count, sources, source_count, destinations, destination_count);
    for (uint64_t i = 0; i < count; i++) {
        double sum = sources[0][i];
        for (uint32_t s = 1; s < source_count; s++) sum += sources[s][i];
        for (uint32_t d = 0; d < destination_count; d++) destinations[d][i] = sum;
    }
    return SLUICE_OK;
}
