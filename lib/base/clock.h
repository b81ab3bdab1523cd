/* Monotonic time. Any thread. */
#ifndef SLC_BASE_CLOCK_H
#define SLC_BASE_CLOCK_H

#include <stdint.h>

uint64_t slc_clock_ns(void); /* nanoseconds since some fixed moment */
static inline double slc_seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

#endif
