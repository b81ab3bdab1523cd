/* How long a link takes that moves bytes slowly. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <errno.h>
#include <time.h>

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
    struct timespec until = {.tv_sec = end_ns / 1000000000, .tv_nsec = end_ns % 1000000000};
    pthread_mutex_lock(&comm->lock);
    while (!atomic_load(&comm->stopped) &&
           pthread_cond_clockwait(&comm->turn, &comm->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&comm->lock);
}
