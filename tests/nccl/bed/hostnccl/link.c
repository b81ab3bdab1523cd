/* The time that a slow link takes. A thread that sleeps for it holds no lock and waits for no condition, because those
 * would tell the thread sanitizer that bytes which have moved may be used before the operation has ended. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <time.h>

enum { LOOK_NS = 1000000 }; /* between two looks whether the communicator is stopped */

int64_t hostnccl_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void hostnccl_charge(ncclComm_t comm, int64_t begin_ns, double bytes)
{
    double cost_ns = hostnccl_link_ns(bytes);
    int64_t end_ns = begin_ns + (int64_t)cost_ns;
    if (cost_ns <= 0 || end_ns <= hostnccl_clock_ns()) return;
    while (!atomic_load(&comm->stopped)) {
        const int64_t now_ns = hostnccl_clock_ns(), piece_ns = now_ns + LOOK_NS < end_ns ? now_ns + LOOK_NS : end_ns;
        if (now_ns >= end_ns) return;
        const struct timespec until = {.tv_sec = piece_ns / 1000000000, .tv_nsec = piece_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
}
