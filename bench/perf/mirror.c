/* Copies go through a piece of pinned memory, because the device's copies want it.
 * tests/command/gpu/several_gpus_link_test.sh covers this file. */
#include "bench/perf/mirror.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 4 << 20 };

sluice_status slc_mirror_init(sluice_stream *stream, char *buffer, uint64_t bytes, slc_mirror *out)
{
    *out = (slc_mirror){.seen = buffer, .buffer = buffer, .stream = stream};
    if (!slc_device_runs_ahead(stream->device)) return SLUICE_OK;
    out->seen = calloc(1, bytes + 1);
    if (!out->seen) return slc_error(SLUICE_ERR_MEMORY, "%llu bytes to check results in", (unsigned long long)bytes);
    return slc_pinned_create(stream->device, slc_least(bytes + 1, PIECE), &out->room);
}

void slc_mirror_fini(slc_mirror *mirror)
{
    if (mirror->seen != mirror->buffer) free(mirror->seen);
    slc_pinned_destroy(&mirror->room);
    *mirror = (slc_mirror){0};
}

sluice_status slc_mirror_give(slc_mirror *mirror, uint64_t bytes)
{
    sluice_status status = SLUICE_OK;
    if (mirror->seen == mirror->buffer) return SLUICE_OK;
    for (uint64_t done = 0, some; !status && done < bytes; done += some) {
        some = slc_least(bytes - done, PIECE);
        memcpy(mirror->room.base, mirror->seen + done, some);
        status = slc_copy(mirror->stream, mirror->buffer + done, mirror->room.base, some);
        if (!status) status = slc_stream_synchronize(mirror->stream);
    }
    return status;
}

sluice_status slc_mirror_take(slc_mirror *mirror, uint64_t bytes)
{
    sluice_status status = SLUICE_OK;
    if (mirror->seen == mirror->buffer) return SLUICE_OK;
    for (uint64_t done = 0, some; !status && done < bytes; done += some) {
        some = slc_least(bytes - done, PIECE);
        status = slc_copy(mirror->stream, mirror->room.base, mirror->buffer + done, some);
        if (!status) status = slc_stream_synchronize(mirror->stream);
        if (!status) memcpy(mirror->seen + done, mirror->room.base, some);
    }
    return status;
}
