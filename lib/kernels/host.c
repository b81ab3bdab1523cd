/* Opens the parallel regions of all kernels; nothing else does. Parts are numbered, not threads, so a runtime that
 * gives fewer threads than asked for changes no result. lib/model/gpt2_test.c covers this file. */
#include "lib/kernels/host.h"

#include "lib/base/status.h"
#include "lib/kernels/lanes.h"

sluice_status slc_host_check(const sluice_stream *stream, const char *kernel)
{
    if (slc_device_get_kind(stream->device) == SLC_DEVICE_HOST) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "kernel %s: only built for the host; use --device cpu", kernel);
}

uint32_t slc_host_parts(const sluice_stream *stream, uint64_t count, uint64_t grain)
{
    if (stream->threads <= 1 || count <= grain) return 1;
    uint64_t most = grain ? count / grain : count;
    return most < stream->threads ? (uint32_t)most : stream->threads;
}

static uint64_t border(uint64_t count, uint64_t unit, uint32_t part, uint32_t parts)
{
    uint64_t units = (count + unit - 1) / unit;
    uint64_t at = (units / parts * part + units % parts * part / parts) * unit;
    return at < count ? at : count;
}

void slc_host_run(const sluice_stream *stream, uint64_t count, uint64_t grain, uint64_t unit, slc_range_kernel *kernel,
                  const void *args)
{
    uint32_t parts = slc_host_parts(stream, count, grain);
    if (parts <= 1) {
        kernel(args, 0, 0, count);
        return;
    }
#if defined(_OPENMP)
#pragma omp parallel for num_threads(parts) schedule(static, 1)
#endif
    for (uint32_t part = 0; part < parts; part++)
        kernel(args, part, border(count, unit, part, parts), border(count, unit, part + 1, parts));
}

bool slc_host_streams(const void *out, uint64_t bytes)
{
    const uint64_t kept = 16 << 20, line = 64;
    return bytes > kept && (uintptr_t)out % line == 0;
}

void slc_host_add_sums(sluice_dtype dtype, uint64_t count, const float *sums, uint32_t parts, uint64_t stride,
                       void *gradient, int fresh)
{
    for (uint64_t c = 0; c < count; c++) {
        float sum = sums[c];
        for (uint32_t part = 1; part < parts; part++) sum += sums[part * stride + c];
        lanes_put_as(dtype, gradient, c, fresh ? sum : lanes_get_as(dtype, gradient, c) + sum);
    }
}
