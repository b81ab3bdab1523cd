/* Monotonic time. Any thread. */
#pragma once

#include <stdint.h>
#include <time.h>

uint64_t slc_clock_ns(void);                 /* nanoseconds since some fixed moment */
uint64_t slc_clock_read_ns(clockid_t clock); /* those of another clock, as of the time that a thread has computed */
static inline double slc_seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}
