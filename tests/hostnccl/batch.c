/* A batch on the thread of its stream: it waits for its turn on the communicator, and tells the link's time. */
#include "tests/hostnccl/comm.h"

#include <errno.h>
#include <time.h>

/* The order of calls is kept; a captured batch only keeps others out while it runs. */
static bool begin_turn(hostnccl_batch *batch)
{
    ncclComm_t comm = batch->comm;
    pthread_mutex_lock(&comm->lock);
    while (!atomic_load(&comm->stopped) && (comm->running || (!batch->captured && comm->ended != batch->ticket)))
        pthread_cond_wait(&comm->turn, &comm->lock);
    bool begun = !atomic_load(&comm->stopped);
    if (begun) comm->running = true;
    pthread_mutex_unlock(&comm->lock);
    return begun;
}

static void end_turn(const hostnccl_batch *batch, bool begun)
{
    ncclComm_t comm = batch->comm;
    pthread_mutex_lock(&comm->lock);
    if (begun) comm->running = false;
    if (!batch->captured) comm->ended++;
    pthread_cond_broadcast(&comm->turn);
    pthread_mutex_unlock(&comm->lock);
}

void hostnccl_batch_run(void *argument)
{
    hostnccl_batch *batch = argument;
    ncclComm_t comm = batch->comm;
    bool captured = batch->captured; /* one that is may be freed as soon as its turn has ended */
    bool begun = begin_turn(batch), go = begun;
    for (hostnccl_operation *o = batch->operations; o && go; o = o->next)
        if (o->kind < HOSTNCCL_SEND) go = hostnccl_collective_run(o);
    if (go) hostnccl_messages_run(comm, batch->operations);
    end_turn(batch, begun);
    if (captured) return;
    hostnccl_batch_free(batch);
    hostnccl_comm_release(comm);
}

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
