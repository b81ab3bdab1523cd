/* Groups. The calls of a thread between the outermost begin and end are kept, and launched at the end: first the jobs
 * that make communicators, then a batch for each communicator, in the order in which they first came. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Thread_local struct {
    int depth;
    ncclResult_t failed;
    hostnccl_batch *batches;
    hostnccl_job *jobs;
} group;

void hostnccl_group_begin(void)
{
    group.depth++;
}

bool hostnccl_group_open(void)
{
    return group.depth > 0;
}

ncclResult_t hostnccl_group_failed(ncclResult_t result)
{
    if (result && !group.failed) group.failed = result;
    return result;
}

static hostnccl_batch *batch_of(ncclComm_t comm)
{
    hostnccl_batch **at = &group.batches;
    while (*at && (*at)->comm != comm) at = &(*at)->next;
    if (!*at && (*at = calloc(1, sizeof **at))) {
        (*at)->comm = comm;
        (*at)->last = &(*at)->operations;
    }
    return *at;
}

ncclResult_t hostnccl_group_add_operation(const hostnccl_operation *operation)
{
    hostnccl_batch *batch = batch_of(operation->comm);
    hostnccl_operation *copy = batch ? malloc(sizeof *copy) : NULL;
    if (!copy) return hostnccl_error(ncclSystemError, "no memory for an operation");
    *copy = *operation;
    copy->next = NULL;
    *batch->last = copy;
    batch->last = &copy->next;
    return ncclSuccess;
}

void hostnccl_group_add_job(hostnccl_job *job)
{
    hostnccl_job **at = &group.jobs;
    while (*at) at = &(*at)->next;
    *at = job;
}

/* Advances jobs in turn until none is left; those of non-blocking communicators are advanced once and then kept by
 * their communicator, and their calls return ncclInProgress even if that was enough. */
static ncclResult_t run_jobs(hostnccl_job *jobs)
{
    ncclResult_t result = ncclSuccess, failed = ncclSuccess;
    for (unsigned rounds = 0; jobs; rounds++) {
        for (hostnccl_job **at = &jobs; *at;) {
            hostnccl_job *job = *at;
            bool blocking = job->blocking;
            ncclResult_t state = failed ? failed : job->advance(job);
            if (state == ncclInProgress && blocking) {
                at = &job->next;
                continue;
            }
            *at = job->next;
            if (state == ncclInProgress) {
                ncclComm_t keeper = job->parent ? job->parent : job->comm;
                if (!job->parent) hostnccl_job_done(job);
                pthread_mutex_lock(&keeper->lock);
                job->next = keeper->jobs;
                keeper->jobs = job;
                pthread_mutex_unlock(&keeper->lock);
            } else {
                if (state)
                    failed = state;
                else
                    hostnccl_job_done(job);
                hostnccl_job_end(job, state != ncclSuccess);
            }
            if (!blocking) result = ncclInProgress;
        }
        if (jobs && !failed) nanosleep(&(struct timespec){.tv_nsec = rounds < 100 ? 20000 : 500000}, NULL);
    }
    return failed ? failed : result;
}

ncclResult_t hostnccl_group_finish(void)
{
    if (group.depth == 0) return hostnccl_error(ncclInvalidUsage, "ncclGroupEnd: not in a group call");
    if (--group.depth > 0) return ncclSuccess;
    ncclResult_t result = group.failed;
    hostnccl_batch *batches = group.batches;
    hostnccl_job *jobs = group.jobs;
    group.failed = ncclSuccess, group.batches = NULL, group.jobs = NULL;
    for (hostnccl_job *job = jobs, *next; result && job; job = next) {
        next = job->next;
        hostnccl_job_end(job, true);
    }
    if (!result) result = run_jobs(jobs);
    hostnccl_batch *later = NULL, **end = &later;
    for (hostnccl_batch *next; batches; batches = next) {
        next = batches->next;
        batches->next = NULL;
        if (result && result != ncclInProgress) {
            hostnccl_batch_free(batches);
        } else if (batches->comm->blocking) {
            ncclResult_t launched = hostnccl_launch(batches);
            if (launched) result = launched;
        } else {
            *end = batches;
            end = &batches->next;
        }
    }
    if (!later) return result;
    ncclResult_t begun = hostnccl_launch_later(later);
    return result && result != ncclInProgress ? result : begun;
}

ncclResult_t ncclGroupStart(void)
{
    hostnccl_group_begin();
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclGroupStart);

ncclResult_t ncclGroupEnd(void)
{
    return hostnccl_group_finish();
}
HOSTNCCL_EXPORT(ncclGroupEnd);

/* Ends the group without launching anything. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    if (group.depth == 0) return hostnccl_error(ncclInvalidUsage, "ncclGroupSimulateEnd: not in a group call");
    if (info && info->magic != NCCL_SIM_INFO_MAGIC)
        hostnccl_group_failed(hostnccl_error(
            ncclInvalidArgument, "ncclGroupSimulateEnd: the info was not made with NCCL_SIM_INFO_INITIALIZER"));
    if (--group.depth > 0) return ncclSuccess;
    ncclResult_t result = group.failed;
    for (hostnccl_job *job = group.jobs, *next; job; job = next) {
        next = job->next;
        hostnccl_job_end(job, true);
    }
    for (hostnccl_batch *batch = group.batches, *next; batch; batch = next) {
        next = batch->next;
        hostnccl_batch_free(batch);
    }
    memset(&group, 0, sizeof group);
    if (!result && info) info->estimatedTime = 0;
    return result;
}
HOSTNCCL_EXPORT(ncclGroupSimulateEnd);
