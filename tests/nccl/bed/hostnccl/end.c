/* Communicators end: in order, or because somebody aborts them while their operations wait. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <stdlib.h>

/* Waits until nothing that was called is to be launched or runs any more, or until the communicator is stopped and
 * nothing runs. */
static void wait_quiet(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->launching || comm->running || (!atomic_load(&comm->stopped) && comm->ended != comm->launched))
        pthread_cond_wait(&comm->turn, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

void hostnccl_comm_stop(ncclComm_t comm, bool wait)
{
    pthread_mutex_lock(&comm->lock);
    atomic_store(&comm->stopped, 1);
    pthread_cond_broadcast(&comm->turn);
    pthread_mutex_unlock(&comm->lock);
    if (comm->segment) hostnccl_segment_ring(comm->segment);
    if (wait) wait_quiet(comm);
}

/* Gives up the jobs of a non-blocking communicator that goes. */
static void end_jobs(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    hostnccl_job *jobs = comm->jobs;
    comm->jobs = NULL;
    pthread_mutex_unlock(&comm->lock);
    for (hostnccl_job *next; jobs; jobs = next) {
        next = jobs->next;
        hostnccl_job_end(jobs, true);
    }
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    ncclResult_t result = hostnccl_comm_check(comm, "ncclCommGetAsyncError");
    if (!result && !error)
        result = hostnccl_error(ncclInvalidArgument, "ncclCommGetAsyncError : asyncError argument is NULL");
    if (!result) *error = hostnccl_comm_state(comm);
    return result;
}
HOSTNCCL_EXPORT(ncclCommGetAsyncError);

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    if (!comm) return ncclSuccess;
    ncclResult_t result = hostnccl_comm_check(comm, "ncclCommFinalize");
    if (result) return result;
    if (hostnccl_comm_launching(comm) || (!atomic_load(&comm->ready) && hostnccl_comm_state(comm)))
        return hostnccl_error(ncclInvalidArgument, "ncclCommFinalize : the communicator is not ready");
    if (atomic_load(&comm->revoked))
        return hostnccl_error(ncclInvalidUsage, "ncclCommFinalize : the communicator was revoked");
    if (atomic_exchange(&comm->finalized, 1))
        return hostnccl_error(ncclInvalidArgument, "ncclCommFinalize : the communicator was finalized before");
    if (!comm->blocking) return ncclInProgress;
    hostnccl_comm_hold(comm); /* another thread may abort it meanwhile */
    wait_quiet(comm);
    hostnccl_comm_release(comm);
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclCommFinalize);

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (!comm) return ncclSuccess;
    ncclResult_t result = hostnccl_comm_check(comm, "ncclCommDestroy");
    if (result) return result;
    end_jobs(comm);
    wait_quiet(comm);
    hostnccl_comm_release(comm);
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclCommDestroy);

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (!comm) return ncclSuccess;
    ncclResult_t result = hostnccl_comm_check(comm, "ncclCommAbort");
    if (result) return result;
    atomic_store(&comm->aborted, 1);
    if (comm->blocking && !atomic_load(&comm->ready)) return ncclSuccess; /* the call that makes it ends it */
    end_jobs(comm);
    hostnccl_comm_stop(comm, true);
    hostnccl_comm_release(comm);
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclCommAbort);

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
    if (!comm) return ncclSuccess;
    ncclResult_t result = hostnccl_comm_check(comm, "ncclCommRevoke");
    if (result) return result;
    if (flags != NCCL_REVOKE_DEFAULT)
        return hostnccl_error(ncclInvalidArgument, "ncclCommRevoke : flags %d: they must be 0", flags);
    if (!atomic_load(&comm->ready) && hostnccl_comm_state(comm))
        return hostnccl_error(ncclInvalidArgument, "ncclCommRevoke : the communicator is not ready");
    if (atomic_exchange(&comm->revoked, 1))
        return hostnccl_error(ncclInvalidUsage, "ncclCommRevoke : the communicator was revoked before");
    hostnccl_comm_stop(comm, comm->blocking);
    return comm->blocking ? ncclSuccess : ncclInProgress;
}
HOSTNCCL_EXPORT(ncclCommRevoke);
