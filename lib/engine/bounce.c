#include "lib/engine/bounce.h"

#include "lib/base/integer.h"
#include "lib/kernels/convert/convert.h"

#include <string.h>

enum { PIECE = SLC_BOUNCE_HALF_BYTES / sizeof(float) };

sluice_status slc_bounce_create(sluice_stream *stream, slc_bounce *out)
{
    *out = (slc_bounce){.stream = stream};
    if (!slc_device_runs_ahead(stream->device)) return SLUICE_OK;
    sluice_status status =
        slc_pinned_create(stream->device, 2 * SLC_BOUNCE_HALF_BYTES + SLC_BOUNCE_ROOM_BYTES, &out->block);
    for (int half = 0; !status && half < 2; half++) status = slc_event_create(stream->device, &out->passed[half]);
    if (status) slc_bounce_destroy(out);
    return status;
}

void slc_bounce_destroy(slc_bounce *bounce)
{
    slc_pinned_destroy(&bounce->block);
    for (int half = 0; half < 2; half++) slc_event_destroy(&bounce->passed[half]);
    *bounce = (slc_bounce){0};
}

static unsigned char *half_of(const slc_bounce *bounce, uint64_t piece)
{
    return (unsigned char *)bounce->block.base + piece % 2 * SLC_BOUNCE_HALF_BYTES;
}

void *slc_bounce_room(const slc_bounce *bounce)
{
    return bounce->block.base ? half_of(bounce, 0) + 2 * SLC_BOUNCE_HALF_BYTES : NULL;
}

static uint64_t pieces_of(uint64_t count)
{
    return (count + PIECE - 1) / PIECE;
}

/* The elements of piece number `piece` of `count`. */
static uint64_t length_of(uint64_t piece, uint64_t count)
{
    return slc_least(count - piece * PIECE, PIECE);
}

static void *device_place(const void *device, sluice_dtype dtype, uint64_t piece)
{
    return (unsigned char *)(uintptr_t)device + piece * PIECE * sluice_dtype_bytes(dtype);
}

/* Begins to read a piece from the device. A kernel reads and writes pinned memory in place, so the piece is converted
 * where it crosses. */
static sluice_status begin_reading(slc_bounce *bounce, sluice_dtype from, const void *device, uint64_t piece,
                                   uint64_t count)
{
    sluice_status status = slc_convert(bounce->stream, from, device_place(device, from, piece), SLUICE_FP32,
                                       half_of(bounce, piece), length_of(piece, count));
    return status ? status : slc_event_record(bounce->stream, &bounce->passed[piece % 2]);
}

static sluice_status end_reading(slc_bounce *bounce, uint64_t piece, float *host, uint64_t count)
{
    sluice_status status = slc_event_synchronize(&bounce->passed[piece % 2]);
    if (!status) memcpy(host + piece * PIECE, half_of(bounce, piece), sizeof *host * length_of(piece, count));
    return status;
}

sluice_status slc_bounce_read(slc_bounce *bounce, sluice_dtype from, const void *device, float *host, uint64_t count)
{
    if (!bounce->block.base) {
        sluice_status status = slc_convert(bounce->stream, from, device, SLUICE_FP32, host, count);
        return status ? status : slc_stream_synchronize(bounce->stream);
    }
    sluice_status status = SLUICE_OK;
    const uint64_t pieces = pieces_of(count);
    for (uint64_t i = 0; !status && i <= pieces; i++) {
        if (i < pieces) status = begin_reading(bounce, from, device, i, count);
        if (!status && i) status = end_reading(bounce, i - 1, host, count);
    }
    return status;
}

static sluice_status write_piece(slc_bounce *bounce, const float *host, sluice_dtype to, void *device, uint64_t piece,
                                 uint64_t count)
{
    const uint64_t length = length_of(piece, count);
    sluice_status status = slc_event_synchronize(&bounce->passed[piece % 2]);
    if (status) return status;
    memcpy(half_of(bounce, piece), host + piece * PIECE, sizeof *host * length);
    status =
        slc_convert(bounce->stream, SLUICE_FP32, half_of(bounce, piece), to, device_place(device, to, piece), length);
    return status ? status : slc_event_record(bounce->stream, &bounce->passed[piece % 2]);
}

sluice_status slc_bounce_write(slc_bounce *bounce, const float *host, sluice_dtype to, void *device, uint64_t count)
{
    sluice_status status = SLUICE_OK;
    if (!bounce->block.base) {
        status = slc_convert(bounce->stream, SLUICE_FP32, host, to, device, count);
    } else {
        for (uint64_t i = 0; !status && i < pieces_of(count); i++)
            status = write_piece(bounce, host, to, device, i, count);
    }
    return status ? status : slc_stream_synchronize(bounce->stream);
}
