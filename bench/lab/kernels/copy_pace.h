/* The peer of kernels whose pace memory sets: a copy of at least 256 MiB by one thread, in the way that is fastest on
 * this machine. */
#ifndef SLC_BENCH_COPY_PACE_H
#define SLC_BENCH_COPY_PACE_H

#include "lib/device/device.h"

#include <time.h>

typedef struct {
    slc_segment from, to;
    uint64_t bytes;
    uint32_t way;    /* the fastest */
    clockid_t clock; /* wall time, or the time of the calling thread: others on the machine cost it less */
} slc_copy_pace;

/* Tries every way `rounds` times, by turns. bytes: of what is copied. Errors: MEMORY, SYSTEM. */
sluice_status slc_copy_pace_open(slc_device *device, uint64_t bytes, uint32_t rounds, clockid_t clock,
                                 slc_copy_pace *out);
void slc_copy_pace_close(slc_copy_pace *pace);       /* zeroed: does nothing */
double slc_copy_pace_seconds(slc_copy_pace *pace);   /* of one copy, the fastest way */
double slc_copy_pace_now(const slc_copy_pace *pace); /* seconds on its clock */
const char *slc_copy_pace_name(const slc_copy_pace *pace);

#endif
