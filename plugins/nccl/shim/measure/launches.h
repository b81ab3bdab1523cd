/* Operations that NCCL took and has not launched: on a communicator that does not block a call returns ncclInProgress,
 * and a thread of NCCL's puts the operation on its stream later. Work that this side puts on the stream after the
 * operation waits here until ncclCommGetAsyncError says that the operation is launched. Private to plugins/nccl/shim.
 *
 * NCCL allows calls of one thread at a time on a communicator, but any thread may ask for its state at the same time,
 * as watchdogs do. So a thread notes what is held before it asks, and takes it only if nothing else has come since. */
#pragma once

#include "plugins/nccl/shim/measure/times.h"
#include "plugins/nccl/shim/state.h"

/* A mark that is put on a stream behind a call, or behind all of a group's calls on that stream and communicator. */
typedef struct {
    slc_shim_comm *known; /* NULL: the shim has not seen it made */
    cudaStream_t stream;
    slc_shim_driver_context context;
    uint64_t first_number, number; /* of the first and the last operation on the communicator */
    uint64_t first, last;          /* indices of their entries */
    uint32_t group;                /* 0: a single call */
    bool untimed;                  /* nobody knows what was on the stream before */
    slc_shim_time_pair *pair;      /* NULL: none */
} slc_shim_stream_mark;

/* Called by the thread of the call: holds a mark of a communicator on which nothing was held before the call. False
 * without memory. Nobody finds the mark before slc_shim_launches_publish. */
bool slc_shim_launches_hold(const slc_shim_stream_mark *mark);
void slc_shim_launches_publish(slc_shim_comm *known);

/* Returns a word for what the communicator holds now; 0: nothing. Any thread. */
uint64_t slc_shim_launches_noted(const slc_shim_comm *known);

/* Takes the marks that are held, if they still are those that were noted; else returns NULL. Other threads wait in
 * slc_shim_launches_wait until slc_shim_launches_taken. */
const slc_shim_stream_mark *slc_shim_launches_take(slc_shim_comm *known, uint64_t noted, size_t *count);
void slc_shim_launches_taken(slc_shim_comm *known);
void slc_shim_launches_wait(const slc_shim_comm *known);

/* Called when the communicator has ended: it holds nothing from then on. */
void slc_shim_launches_end(slc_shim_comm *known);
