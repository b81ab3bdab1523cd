/* A batch on the thread of its stream: it waits for its turn on the communicator. */
#include "tests/nccl/bed/hostnccl/comm.h"

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
