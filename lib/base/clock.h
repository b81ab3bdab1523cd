/* Monotonic time. Any thread. */
#pragma once

#include <stdint.h>

uint64_t slc_clock_ns(void); /* nanoseconds since some fixed moment */
static inline double slc_seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}
