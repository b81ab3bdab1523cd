/* Monotonic time. gate_test.c covers this file. */
#include "lib/base/clock.h"

uint64_t slc_clock_read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t slc_clock_ns(void)
{
    return slc_clock_read_ns(CLOCK_MONOTONIC);
}
