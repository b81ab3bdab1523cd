/* The reference for memory-bound kernels: a copy by one thread, done in the way that is fastest on this machine. The
 * copy should be larger than the caches. */
#pragma once

#include "lib/device/device.h"

#include <time.h>

typedef struct {
    slc_segment from, to;
    uint64_t bytes;
    uint32_t way; /* index of the fastest way */
    /* Wall time, or the CPU time of the calling thread, which other work on the machine disturbs less. */
    clockid_t clock;
} slc_copy_pace;

/* Tries every way `rounds` times, in turn, and keeps the fastest. bytes: size of the copy. Errors: MEMORY, SYSTEM. */
sluice_status slc_copy_pace_open(slc_device *device, uint64_t bytes, uint32_t rounds, clockid_t clock,
                                 slc_copy_pace *out);
void slc_copy_pace_close(slc_copy_pace *pace);     /* a zeroed one is allowed */
double slc_copy_pace_seconds(slc_copy_pace *pace); /* time of one copy in the fastest way */
const char *slc_copy_pace_name(const slc_copy_pace *pace);
