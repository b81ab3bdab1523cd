/* One call on a communicator, from its arrival to its return: recorded, measured, changed by a transform where one is
 * asked for, passed on. Private to plugins/nccl/shim. */
#ifndef SLC_SHIM_CALL_H
#define SLC_SHIM_CALL_H

#include "plugins/nccl/shim/communicators.h"

/* A call of one of NCCL's functions, with its arguments. */
typedef struct {
    slc_record_operation operation;
    const void *send;
    void *receive;
    size_t count;
    unsigned type;  /* ncclDataType_t; 0xff: none */
    unsigned redop; /* ncclRedOp_t as the program gave it; SLC_RECORD_NO_REDOP: none */
    int peer;       /* the root, or the other rank; -1: none */
    ncclComm_t comm;
    cudaStream_t stream;
    const void *caller;
    slc_shim_comm *known; /* found by slc_shim_call_begin where `comm` is given; NULL: the shim has not seen it made */
    /* Filled by slc_shim_call_begin. */
    slc_shim_recorder *recorder;
    slc_shim_thread *thread;
    const slc_shim_real *real;
    uint64_t peer_number; /* of a send or a receive, among those with this peer; 0: not counted */
    uint64_t entry;       /* the index of its entry */
    bool captured;
    unsigned flags;                  /* of its entry, besides those that follow from the rest */
    struct slc_shim_time_pair *pair; /* events around it; NULL: none */
} slc_shim_call;

enum { SLC_SHIM_NO_TYPE = 0xff };
#define SLC_SHIM_PLAIN_CALL ((slc_shim_call){.type = SLC_SHIM_NO_TYPE, .redop = SLC_RECORD_NO_REDOP, .peer = -1})

/* An operation that its communicator counts. A collective of nothing is none: NCCL discards it before ranks meet. */
static inline bool slc_shim_call_is_counted(const slc_shim_call *call)
{
    bool is_empty = !call->count && call->operation < SLC_RECORD_SPLIT;
    return call->operation <= SLC_RECORD_RECEIVE && !is_empty;
}

/* The library whose own call this is: a call that arrives from NCCL's code, or while this thread is inside a call of
 * ours, is NCCL's and passes unrecorded. NULL: it is the program's. */
static inline const slc_shim_real *slc_shim_call_of_nccl(const void *caller)
{
    const slc_shim_real *inside = slc_shim_this_thread()->inside;
    return __builtin_expect(inside != NULL, 0) ? inside : slc_shim_real_at(caller);
}

/* Begins the thread's groups in a library that its group has not used yet. */
void slc_shim_call_join_groups(slc_shim_thread *thread, const slc_shim_real *real);

/* Writes the entry of a call whose recorder, thread and communicator are known, and counts it on its communicator. */
void slc_shim_call_record(slc_shim_call *call);

/* Finds the call's communicator and library, writes its entry, counts it on its communicator, and begins the thread's
 * groups in its library if that is another one than the default. Until slc_shim_call_end what arrives in this thread is
 * NCCL's own. */
void slc_shim_call_begin(slc_shim_call *call);

/* Notes what the call returned. */
ncclResult_t slc_shim_call_end(slc_shim_call *call, ncclResult_t result);

/* A call that failed; what NCCL has not finished yet has not. */
static inline bool slc_shim_has_failed(ncclResult_t result)
{
    return result != ncclSuccess && result != ncclInProgress;
}

#endif
