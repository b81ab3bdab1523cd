/* Picks the loop; the small int64 and float64 reductions are plain loops here. */
#include "lib/kernels/reduce/reduce.h"

#include "lib/base/status.h"
#include "lib/kernels/dispatch.h"

enum { GRAIN = 32768 };

static sluice_status check(const sluice_stream *stream, uint32_t source_count, uint32_t destination_count)
{
    if (source_count == 0 || destination_count == 0)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel reduce: %u sources, %u destinations; at least one of each",
                         source_count, destination_count);
    const bool many = source_count > SLC_REDUCE_CUDA_MOST || destination_count > SLC_REDUCE_CUDA_MOST;
    if (!SLC_ON_CUDA(stream) || !many) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "kernel reduce: %u sources, %u destinations; at most %d on a GPU",
                     source_count, destination_count, SLC_REDUCE_CUDA_MOST);
}

static void reduce_host(sluice_stream *stream, const slc_reduce_args *args)
{
    slc_host_run(stream, args->count, GRAIN, 16, SLC_ISA_PICK(slc_reduce_range), args);
}

sluice_status slc_reduce(sluice_stream *stream, const slc_reduce_args *args)
{
    sluice_status status = check(stream, args->source_count, args->destination_count);
    if (status) return status;
    if (args->accumulate && args->destination_count != 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel reduce: accumulates into one destination, not %u",
                         args->destination_count);
    return SLC_DEVICE_RUN(stream, reduce, args);
}

/* Defines the reduction of small vectors of a type that is summed as it is. */
#define REDUCE_SMALL(name, type)                                                                                       \
    static void name##_host(sluice_stream *stream, uint64_t count, const type *const *sources, uint32_t source_count,  \
                            type *const *destinations, uint32_t destination_count)                                     \
    {                                                                                                                  \
        (void)stream;                                                                                                  \
        for (uint64_t i = 0; i < count; i++) {                                                                         \
            type sum = sources[0][i];                                                                                  \
            for (uint32_t s = 1; s < source_count; s++) sum += sources[s][i];                                          \
            for (uint32_t d = 0; d < destination_count; d++) destinations[d][i] = sum;                                 \
        }                                                                                                              \
    }

REDUCE_SMALL(reduce_int64, int64_t)
REDUCE_SMALL(reduce_float64, double)

sluice_status slc_reduce_int64(sluice_stream *stream, uint64_t count, const int64_t *const *sources,
                               uint32_t source_count, int64_t *const *destinations, uint32_t destination_count)
{
    sluice_status status = check(stream, source_count, destination_count);
    if (status) return status;
    return SLC_DEVICE_RUN(stream, reduce_int64, count, sources, source_count, destinations, destination_count);
}

sluice_status slc_reduce_float64(sluice_stream *stream, uint64_t count, const double *const *sources,
                                 uint32_t source_count, double *const *destinations, uint32_t destination_count)
{
    sluice_status status = check(stream, source_count, destination_count);
    if (status) return status;
    return SLC_DEVICE_RUN(stream, reduce_float64, count, sources, source_count, destinations, destination_count);
}
