/* The pace of memory, next to which a collective through memory is measured: plain copies in all ranks at once. */
#pragma once

#include "lib/device/device.h"

#include <sluice/world.h>

/* A piece of what this rank copies; `from` may be a peer's memory. */
typedef struct {
    void *to;
    const void *from;
    uint64_t bytes;
} slc_plain_piece;

/* The ways in which pieces are copied: with memcpy, with memcpy by pieces of 128 KiB, with stores past the cache. */
enum { SLC_PLAIN_WAYS = 3 };

/* Copies all pieces `iterations` times in each way, and adds the seconds that each took this rank. Collective. Errors:
 * those of the world. */
sluice_status slc_plain_copy(sluice_world *world, sluice_stream *stream, const slc_plain_piece *pieces, uint64_t count,
                             uint32_t iterations, double seconds[SLC_PLAIN_WAYS]);
/* Gives the seconds of the way that was the fastest over all ranks, their sum. Collective. Errors: those of the world.
 */
sluice_status slc_plain_copy_fastest(sluice_world *world, double seconds[SLC_PLAIN_WAYS], double *fastest);
