/* Random pauses around posts and waits, and at the words of channels, in test builds only (-DSLUICE_GATE_DELAYS=ON, as
 * in the thread sanitizer's preset): threads then meet in orders in which they seldom meet by themselves. In other
 * builds it does nothing. */
#pragma once

#ifdef SLUICE_GATE_DELAYS
#include <sched.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

/* One call in 32 sleeps for up to 0.1 ms, and one in eight yields. Each thread's sequence of draws begins with its
 * id. */
static inline void slc_gate_delay(void)
{
    static _Thread_local uint64_t state;
    if (!state) state = ((uint64_t)gettid() + 1) * 0x9e3779b97f4a7c15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint32_t drawn = (uint32_t)(state >> 32);
    if (drawn % 32 == 0)
        nanosleep(&(struct timespec){.tv_nsec = drawn / 32 % 100000}, NULL);
    else if (drawn % 8 == 1)
        sched_yield();
}
#else
static inline void slc_gate_delay(void)
{
}
#endif
