/* A communicator, and what its making has under way. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <stdlib.h>

void hostnccl_batch_free(hostnccl_batch *batch)
{
    for (hostnccl_operation *o = batch->operations, *next; o; o = next) {
        next = o->next;
        free(o);
    }
    free(batch);
}

ncclComm_t hostnccl_comm_new(bool blocking)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    if (!comm) return NULL;
    comm->magic = HOSTNCCL_MAGIC;
    comm->blocking = blocking;
    comm->users = 1;
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->turn, NULL);
    cudaGetDevice(&comm->device);
    return comm;
}

void hostnccl_comm_hold(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->users++;
    pthread_mutex_unlock(&comm->lock);
}

void hostnccl_comm_release(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    bool last = --comm->users == 0;
    pthread_mutex_unlock(&comm->lock);
    if (!last) return;
    for (hostnccl_batch *batch = comm->captured, *next; batch; batch = next) {
        next = batch->next;
        hostnccl_batch_free(batch);
    }
    for (hostnccl_registered *entry = comm->registered, *next; entry; entry = next) {
        next = entry->next;
        free(entry);
    }
    free(comm->redops);
    if (comm->segment) hostnccl_segment_leave(comm->segment);
    comm->magic = 0;
    pthread_cond_destroy(&comm->turn);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

/* ---- Jobs ---- */

void hostnccl_job_done(hostnccl_job *job)
{
    if (job->out && job->comm) __atomic_store_n(job->out, job->comm, __ATOMIC_RELEASE);
    job->out = NULL;
}

void hostnccl_job_end(hostnccl_job *job, bool failed)
{
    if (job->comm && failed && job->out) {
        *job->out = NULL;
        hostnccl_comm_release(job->comm);
    }
    if (job->parent) hostnccl_comm_release(job->parent);
    free(job);
}

/* ---- What can be done with it ---- */

bool hostnccl_comm_launching(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    bool launching = comm->launching;
    pthread_mutex_unlock(&comm->lock);
    return launching;
}

static ncclResult_t advance_jobs(ncclComm_t comm)
{
    ncclResult_t result = ncclSuccess;
    hostnccl_job *done = NULL;
    pthread_mutex_lock(&comm->lock);
    for (hostnccl_job **at = &comm->jobs; *at;) {
        hostnccl_job *job = *at;
        ncclResult_t state = job->advance(job);
        if (state == ncclInProgress) {
            result = state;
            at = &job->next;
            continue;
        }
        if (state)
            atomic_store(&comm->error, (int)state);
        else
            hostnccl_job_done(job);
        *at = job->next;
        job->next = done;
        done = job;
    }
    pthread_mutex_unlock(&comm->lock);
    for (hostnccl_job *next; done; done = next) {
        next = done->next;
        hostnccl_job_end(done, true); /* a communicator that the program has, it ends */
    }
    return result;
}

ncclResult_t hostnccl_comm_state(ncclComm_t comm)
{
    ncclResult_t result = advance_jobs(comm);
    int error = atomic_load(&comm->error);
    if (error) return (ncclResult_t)error;
    if (result || (!atomic_load(&comm->ready) && !comm->blocking)) return ncclInProgress;
    pthread_mutex_lock(&comm->lock);
    bool busy = comm->running || (!atomic_load(&comm->revoked) && comm->ended != comm->launched);
    pthread_mutex_unlock(&comm->lock);
    if (hostnccl_comm_launching(comm)) return ncclInProgress;
    bool ending = atomic_load(&comm->finalized) || atomic_load(&comm->revoked);
    return ending && busy ? ncclInProgress : ncclSuccess;
}

ncclResult_t hostnccl_comm_check(ncclComm_t comm, const char *function)
{
    if (!comm) return hostnccl_error(ncclInvalidArgument, "%s : comm argument is NULL", function);
    if (comm->magic != HOSTNCCL_MAGIC)
        return hostnccl_error(ncclInvalidArgument, "Error: corrupted comm object detected (%s)", function);
    return ncclSuccess;
}

ncclResult_t hostnccl_comm_usable(ncclComm_t comm, const char *function)
{
    ncclResult_t result = hostnccl_comm_check(comm, function);
    if (result) return result;
    bool launching = hostnccl_comm_launching(comm);
    if (launching || !atomic_load(&comm->ready)) {
        ncclResult_t state = hostnccl_comm_state(comm);
        if (state && state != ncclInProgress) return state;
        if (launching || !atomic_load(&comm->ready))
            return hostnccl_error(ncclInvalidArgument,
                                  "%s : Attempt to use communicator before the previous operation returned ncclSuccess",
                                  function);
    }
    const char *why = atomic_load(&comm->revoked)     ? "was revoked"
                      : atomic_load(&comm->finalized) ? "was finalized"
                      : atomic_load(&comm->stopped)   ? "had its operations aborted"
                                                      : NULL;
    if (why) return hostnccl_error(ncclInvalidUsage, "%s : the communicator %s", function, why);
    return ncclSuccess;
}
