/* Transforms (fusing, compressing) meet the calls that pass through the shim here. Private to plugins/nccl/shim. The
 * folder transforms/ implements slc_shim_transforms_open; a build without it, and a process that asks for none, has
 * recorder->transforms NULL, and each place below is then one branch that is never taken.
 *
 * All functions are called in the program's thread, with no lock held, and never for NCCL's own calls. They call NCCL
 * by the function pointers of comm->real, which do not come back here, and may return an error of NCCL's. */
#pragma once

#include "plugins/nccl/shim/state.h"

struct slc_shim_transforms {
    /* Called with communicators that have just become usable, all together: those of one ncclCommInitAll, of one
     * outermost group, or a single one; a list by `next`. The call that made them has succeeded and not yet returned. A
     * communicator that does not block comes when ncclCommGetAsyncError first says success. Each keeps what it is given
     * in comm->transforms. */
    void (*created)(slc_shim_recorder *recorder, slc_shim_comm *first);

    /* Called with a collective, send or receive whose entry is written. Returns true if it took the call: then *result
     * is what the program gets, and the call is not passed on (in a group it may be held until group_end; outside of
     * groups all its work must be enqueued on call->stream now). Returns false if the call is to pass: then it counts
     * the reason in call->known->row->passed. `known` may be NULL. */
    bool (*take)(slc_shim_call *call, ncclResult_t *result);

    /* Called when an operator is being destroyed. Returns true if the call is to be made at the end of the thread's
     * group, after the calls that take held: then *result is what the program gets. */
    bool (*redop_destroyed)(slc_shim_thread *thread, const slc_shim_real *real, ncclRedOp_t op, ncclComm_t comm,
                            ncclResult_t *result);

    /* Called at the end of the thread's outermost group, before that is passed on: sends what take held. An error is
     * returned to the program once the group has been ended. */
    ncclResult_t (*group_end)(slc_shim_recorder *recorder, slc_shim_thread *thread);

    /* Called after the outermost group was ended with `result`: unpacks, and does all else that needs the group's work
     * enqueued. */
    ncclResult_t (*group_ended)(slc_shim_recorder *recorder, slc_shim_thread *thread, ncclResult_t result);

    /* Called before the end of the outermost group is passed on as one that is only simulated: makes the calls that
     * take held, unchanged. */
    void (*group_is_simulated)(slc_shim_thread *thread);

    /* Called before a destroy or an abort is passed on. In an abort, other threads may be in calls on the communicator,
     * and nothing here may wait. ncclCommFinalize does not call it. */
    void (*ended)(slc_shim_comm *comm, bool aborted);

    /* Called when a window is being made of memory of a communicator, which all of its ranks do alike. */
    void (*window_made)(slc_shim_comm *comm);
};

/* Reads the settings; fills the header's fuse_bytes, compress_bytes and staging_limit. NULL: nothing is asked for. A
 * setting that is refused is told in one line; then communicators only tell their other ranks so. */
const slc_shim_transforms *slc_shim_transforms_open(slc_shim_recorder *recorder) __attribute__((weak));

/* Called in a forked process, before its first call. */
void slc_shim_transforms_child(void) __attribute__((weak));
