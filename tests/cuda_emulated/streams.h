/* Streams and events, as the files of the two runtimes see them. A handle is the address of one of these; work that is
 * in a queue holds what it needs, so that destroying a handle waits for nothing. */
#pragma once

#include "tests/cuda_emulated/runtime.h"

#include <deque>
#include <memory>
#include <pthread.h>
#include <time.h>
#include <vector>

/* A stream that is being captured into a graph hands its work to this and not to its queue. */
struct emulated_recorder {
    virtual ~emulated_recorder() = default;
    virtual cudaError_t append(CUstream_st *stream, bool device_memory, std::function<void()> work) = 0;
    virtual cudaError_t record(CUstream_st *stream, CUevent_st *event) = 0;
    virtual cudaError_t wait(CUstream_st *stream, CUevent_st *event) = 0; /* stream or event is being captured */
    virtual cudaError_t refuse() = 0;       /* a call that no capture bears: invalidates it */
    virtual cudaError_t refuse_event() = 0; /* the host asks for an event that was recorded in it */
};

struct emulated_job {
    std::function<void()> work; /* none: the stream ends */
    bool device_memory;
    char order; /* what the caller did before it is seen by it; each has its own, so that later calls order nothing */
};

struct CUstream_st : std::enable_shared_from_this<CUstream_st> {
    std::shared_ptr<CUstream_st> handle; /* itself, until it is destroyed */
    std::deque<std::unique_ptr<emulated_job>> queue;
    emulated_lock lock;
    std::atomic<uint32_t> asked{0}, done{0};
    pthread_t thread;
    int device, priority;
    unsigned flags;
    uint64_t number, random;
    char order;                                  /* from the stream to who waits for it */
    char last;                                   /* from who has asked it to end to the end of its queue */
    std::atomic<emulated_recorder *> recorder{}; /* while it is being captured */
    std::shared_ptr<emulated_recorder> capture;  /* the same; it keeps it */
    int lane = 0;                                /* the recorder's number of this stream */
    std::atomic<const char *> collective{};      /* what it runs, while it waits for other ranks */
};

/* One record of an event. A stream that waits for the event waits for this record, even if the event is recorded again,
 * in another stream that is faster. */
struct emulated_record {
    std::atomic<uint32_t> done{0};
    timespec when;
    char order;
};

struct CUevent_st : std::enable_shared_from_this<CUevent_st> {
    std::shared_ptr<CUevent_st> handle;      /* itself, until it is destroyed */
    std::shared_ptr<emulated_record> latest; /* read and written by std::atomic_load and std::atomic_store */
    int device;
    bool timed;
    std::shared_ptr<emulated_recorder> recorder; /* the capture that it was last recorded in */
    size_t mark = 0;                             /* the recorder's number of that record */
};

cudaError_t emulated_create_stream(cudaStream_t *out, unsigned flags, int priority);
/* The stream that a handle stands for: 0 and 1 are the current device's default stream, 2 the thread's own. */
cudaStream_t emulated_stream(cudaStream_t handle);
/* Appends work to a stream's queue, whether it is being captured or not. */
void emulated_push(cudaStream_t stream, bool device_memory, std::function<void()> work);
/* The work that records an event, and the one that waits for its last record. */
std::function<void()> emulated_recording(cudaEvent_t event);
std::function<void()> emulated_waiting(cudaEvent_t event);
std::vector<std::shared_ptr<CUstream_st>> emulated_streams_of(int device);
void emulated_wait_for_stream(CUstream_st *stream);

/* ---- loading.cc ---- */

/* Called before a kernel is launched: the first time on its GPU waits until all streams there are empty. `kernel` is a
 * number of its own, `name` is for messages. */
void emulated_load(cudaStream_t stream, uint64_t kernel, const char *name);
/* A thread holds the lock of a device's context while it gives that GPU work, or loads a kernel there. */
void emulated_context_lock(int device);
void emulated_context_unlock(int device);
void emulated_is_stream(CUstream_st *stream); /* the calling thread is this stream's */
