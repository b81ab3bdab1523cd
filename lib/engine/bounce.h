/* Copies between the caller's fp32 arrays and a device's memory, converted on the way, for what happens between steps:
 * parameters are read and written, checkpoints saved and loaded. If the host cannot touch the device's memory, they go
 * through a block of pinned memory, made once, in pieces: while one half of it is copied by the device, the host copies
 * the other. On the host device there is no block. One call at a time. Private to lib/engine. */
#pragma once

#include "lib/device/device.h"

#include <sluice/dtype.h>

enum { SLC_BOUNCE_HALF_BYTES = 2 << 20, SLC_BOUNCE_ROOM_BYTES = 4 << 20 };

typedef struct {
    sluice_stream *stream;
    slc_pinned block;    /* two halves and the room; base NULL: the host touches the device's memory */
    slc_event passed[2]; /* each half's last copy */
} slc_bounce;

/* Everything runs on `stream`, which must outlive it. The caller ends it. Errors: MEMORY. */
sluice_status slc_bounce_create(sluice_stream *stream, slc_bounce *out);
void slc_bounce_destroy(slc_bounce *bounce); /* does nothing to a zeroed one */

/* Copies `count` elements to or from the device's memory. The copy is complete when the call returns. */
sluice_status slc_bounce_read(slc_bounce *bounce, sluice_dtype from, const void *device, float *host, uint64_t count);
sluice_status slc_bounce_write(slc_bounce *bounce, const float *host, sluice_dtype to, void *device, uint64_t count);

/* SLC_BOUNCE_ROOM_BYTES of host memory that the device copies to and from, for the caller; NULL on the host device. */
void *slc_bounce_room(const slc_bounce *bounce);
