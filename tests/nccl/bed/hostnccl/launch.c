/* Batches get to their streams: in the calling thread, or, as NCCL does it for communicators that do not block, in a
 * thread of their own some time after the call has returned. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include "tests/cuda_emulated/include/emulated.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

/* True if this operation is the first of the batch on its stream, and that is not the stream of the batch's first
 * operation. */
static bool brings_stream(const hostnccl_batch *batch, const hostnccl_operation *o)
{
    for (const hostnccl_operation *before = batch->operations; before != o; before = before->next)
        if (before->stream == o->stream) return false;
    return o != batch->operations;
}

enum { NAME_BYTES = 128 };

/* Writes the name of the batch for messages, in NAME_BYTES. */
static void name_batch(const hostnccl_batch *batch, char *name)
{
    static const char *const kinds[] = {"",        "all-reduce", "reduce-scatter", "all-gather",
                                        "reduce",  "broadcast",  "all-to-all",     "gather",
                                        "scatter", "send",       "receive"};
    const hostnccl_operation *first = batch->operations;
    snprintf(name, NAME_BYTES, "%s of %zu elements, rank %d of %d", kinds[first->kind], first->count, batch->comm->rank,
             batch->comm->size);
}

static uint64_t count_calls(const hostnccl_batch *batch)
{
    uint64_t calls = 0;
    for (const hostnccl_operation *o = batch->operations; o; o = o->next) calls++;
    return calls;
}

/* Gives the batch to its stream, as the next one of its communicator. From then on the stream's thread frees it. */
static cudaError_t launch_next(hostnccl_batch *batch, cudaStream_t stream)
{
    ncclComm_t comm = batch->comm;
    bool captured = batch->captured;
    char name[NAME_BYTES];
    name_batch(batch, name);
    pthread_mutex_lock(&comm->lock);
    batch->ticket = comm->launched;
    comm->launched += !captured;
    comm->users += !captured;
    pthread_mutex_unlock(&comm->lock);
    cudaError_t error = emulated_launch_collective(stream, hostnccl_batch_run, batch, name, count_calls(batch));
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

ncclResult_t hostnccl_launch(hostnccl_batch *batch)
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

/* ---- Communicators that do not block ---- */

/* Draws how long the thread waits before it launches: equal calls of a communicator differ, and so do its ranks. */
static void wait_drawn_time(const hostnccl_batch *batch)
{
    ncclComm_t comm = batch->comm;
    uint64_t random = comm->launched * 1024 + (uint64_t)comm->rank;
    double share = (double)(hostnccl_draw(&random) >> 11) / (double)(UINT64_C(1) << 53),
           ns = share * hostnccl_launch_delay_ns();
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)ns % 1000000000}, NULL);
}

static void end_launch(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->launching = false;
    pthread_cond_broadcast(&comm->turn);
    pthread_mutex_unlock(&comm->lock);
    hostnccl_comm_release(comm);
}

static void *launch_all(void *argument)
{
    hostnccl_batch *batches = argument;
    wait_drawn_time(batches);
    for (hostnccl_batch *next; batches; batches = next) {
        ncclComm_t comm = batches->comm;
        next = batches->next;
        batches->next = NULL;
        ncclResult_t result = hostnccl_launch(batches);
        if (result) atomic_store(&comm->error, (int)result);
        end_launch(comm);
    }
    return NULL;
}

ncclResult_t hostnccl_launch_later(hostnccl_batch *batches)
{
    pthread_t thread;
    pthread_attr_t attributes;
    for (hostnccl_batch *batch = batches; batch; batch = batch->next) {
        pthread_mutex_lock(&batch->comm->lock);
        batch->comm->launching = true;
        batch->comm->users++;
        pthread_mutex_unlock(&batch->comm->lock);
    }
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attributes, launch_all, batches);
    pthread_attr_destroy(&attributes);
    if (!error) return ncclInProgress;
    for (hostnccl_batch *next; batches; batches = next) {
        next = batches->next;
        end_launch(batches->comm);
        hostnccl_batch_free(batches);
    }
    return hostnccl_error(ncclSystemError, "no thread to launch operations");
}
