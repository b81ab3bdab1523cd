/* Groups. What a thread calls between the outermost begin and end is kept, and launched at the end: first the jobs that
 * make communicators, then a batch for each communicator, in the order in which they first came. */
#include "tests/hostnccl/comm.h"

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

void hostnccl_batch_free(hostnccl_batch *batch)
{
    for (hostnccl_operation *o = batch->operations, *next; o; o = next) {
        next = o->next;
        free(o);
    }
    free(batch);
}

/* Makes `later` wait for what was given to `earlier`. */
static cudaError_t order_streams(cudaStream_t earlier, cudaStream_t later)
{
    cudaEvent_t event;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error) return error;
    error = cudaEventRecord(event, earlier);
    if (!error) error = cudaStreamWaitEvent(later, event, 0);
    cudaEventDestroy(event);
    return error;
}

/* Whether this operation is the first of the batch on its stream, which is not the batch's. */
static bool brings_stream(const hostnccl_batch *batch, const hostnccl_operation *o)
{
    for (const hostnccl_operation *before = batch->operations; before != o; before = before->next)
        if (before->stream == o->stream) return false;
    return o != batch->operations;
}

/* Gives the batch to its stream, as the next one of its communicator. From then on the stream's thread frees it. */
static cudaError_t launch_next(hostnccl_batch *batch, cudaStream_t stream)
{
    ncclComm_t comm = batch->comm;
    bool captured = batch->captured;
    pthread_mutex_lock(&comm->lock);
    batch->ticket = comm->launched;
    comm->launched += !captured;
    comm->users += !captured;
    pthread_mutex_unlock(&comm->lock);
    cudaError_t error = cudaLaunchHostFunc(stream, hostnccl_batch_run, batch);
    pthread_mutex_lock(&comm->lock);
    if (error) {
        comm->launched -= !captured;
        comm->users -= !captured;
        hostnccl_batch_free(batch);
    } else if (captured) {
        batch->next = comm->captured;
        comm->captured = batch;
    }
    pthread_mutex_unlock(&comm->lock);
    return error;
}

/* All streams of the batch meet: it begins after what they had to do, and what they get later begins after it. */
static cudaError_t launch_on_streams(hostnccl_batch *batch)
{
    cudaStream_t stream = batch->operations->stream, *others = NULL;
    size_t count = 0;
    cudaError_t error = cudaSuccess;
    for (hostnccl_operation *o = batch->operations; o; o = o->next)
        if (brings_stream(batch, o)) count++;
    if (count && !(others = malloc(count * sizeof *others))) error = cudaErrorMemoryAllocation;
    count = 0;
    for (hostnccl_operation *o = batch->operations; o && !error; o = o->next)
        if (brings_stream(batch, o)) others[count++] = o->stream;
    for (size_t i = 0; i < count && !error; i++) error = order_streams(others[i], stream);
    if (error)
        hostnccl_batch_free(batch);
    else
        error = launch_next(batch, stream);
    for (size_t i = 0; i < count && !error; i++) error = order_streams(stream, others[i]);
    free(others);
    return error;
}

static ncclResult_t launch_batch(hostnccl_batch *batch)
{
    int device = 0;
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaGetDevice(&device);
    cudaError_t error = cudaSetDevice(batch->comm->device);
    if (!error) error = cudaStreamIsCapturing(batch->operations->stream, &capture);
    batch->captured = capture == cudaStreamCaptureStatusActive;
    if (error)
        hostnccl_batch_free(batch);
    else
        error = launch_on_streams(batch);
    cudaSetDevice(device);
    return error ? hostnccl_cuda_failed("launching operations", error) : ncclSuccess;
}

/* Advances jobs in turn until none is left; those of non-blocking communicators are advanced once and then kept by
 * their communicator, and their calls return ncclInProgress even where that was enough. */
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
    for (hostnccl_batch *next; batches; batches = next) {
        next = batches->next;
        batches->next = NULL;
        bool blocking = batches->comm->blocking;
        if (!result || result == ncclInProgress) {
            ncclResult_t launched = launch_batch(batches);
            result = launched ? launched : blocking ? result : ncclInProgress;
        } else {
            hostnccl_batch_free(batches);
        }
    }
    return result;
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
