/* A mirror is a buffer that operations work on, as the host sees it: the buffer itself, or, if it lies in a GPU's
 * memory, an array of the host's that is copied there and back. */
#pragma once

#include "lib/device/device.h"

typedef struct {
    char *seen;      /* what the host writes and reads */
    char *buffer;    /* what operations work on; the same as `seen` on the host */
    slc_pinned room; /* for copies */
    sluice_stream *stream;
} slc_mirror;

/* `stream`, of the buffer's device, carries the copies and outlives the mirror. The caller calls slc_mirror_fini, also
 * after an error, and on a zeroed mirror if need be. Errors: MEMORY. */
sluice_status slc_mirror_init(sluice_stream *stream, char *buffer, uint64_t bytes, slc_mirror *out);
void slc_mirror_fini(slc_mirror *mirror);

/* slc_mirror_give copies the first `bytes` that the host wrote to the buffer; slc_mirror_take copies those of the
 * buffer to where the host reads. No operation may be under way. Errors: those of the device. */
sluice_status slc_mirror_give(slc_mirror *mirror, uint64_t bytes);
sluice_status slc_mirror_take(slc_mirror *mirror, uint64_t bytes);
