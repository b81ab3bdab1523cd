/* The structs in which the shim keeps what it knows of its process, of a communicator and of a call. Private to
 * plugins/nccl/shim. */
#pragma once

#include "plugins/nccl/record/record.h"
#include "plugins/nccl/shim/library/real.h"
#include "plugins/nccl/shim/measure/driver.h"
#include "plugins/nccl/shim/thread.h"
#include <stdatomic.h>
#include <stdbool.h>

typedef struct slc_shim_comm_table slc_shim_comm_table;
typedef struct slc_shim_transforms slc_shim_transforms; /* transforms.h */
enum { SLC_SHIM_CALLER_CACHE = 1024 }; /* return addresses whose module is known without asking the loader */

/* The recorder is what the shim knows of its process. All that the record file has lies at these addresses, whether
 * they are the file's or, if there was no room for a file, private memory. */
typedef struct slc_shim_recorder {
    slc_record_header *header;
    slc_record_communicator *rows;
    slc_record_module *modules;
    slc_record_entry *entries;
    slc_record_time *times;                  /* NULL without SLUICE_SHIM_TIME */
    uint64_t entry_mask;                     /* entry_count - 1 */
    _Atomic(const slc_shim_driver *) driver; /* CUDA's; NULL: not found, or not looked for yet */
    _Atomic bool library_is_noted;
    _Atomic bool driver_is_claimed, driver_is_known;
    _Atomic bool measures;                 /* the driver is there, and DONE or TIME is on */
    _Atomic bool time_is_off;              /* the driver refused */
    bool wants_done;                       /* SLUICE_SHIM_DONE */
    _Atomic uint64_t done_at;              /* the rows' address on devices; 0: streams write nothing */
    char *path;                            /* of the file; NULL: private memory */
    const slc_shim_transforms *transforms; /* NULL: off */
    struct slc_shim_recorder *parent;      /* of the process that this one was forked from */
    bool kept;                             /* whatever happens: the user asked for it */
    _Atomic bool fault;                    /* a call failed, or the process ended with an error: the file stays */
    _Atomic uint32_t groups, threads, inits;
    _Atomic(slc_shim_comm_table *) communicators;
    _Atomic uint64_t callers[SLC_SHIM_CALLER_CACHE];
    _Atomic int64_t callers_checked_ns;
    _Atomic unsigned long long loads; /* what the loader had loaded and unloaded then */
} slc_shim_recorder;

/* A communicator. */
typedef struct slc_shim_comm {
    ncclComm_t comm;
    const slc_shim_real *real;
    slc_record_communicator *row; /* of no file if the record has no rows left */
    unsigned number;              /* of the row; SLC_RECORD_NO_COMMUNICATOR if it has none */
    bool nonblocking, shares;     /* as its configuration says: `shares` resources with its parent */
    unsigned shrinks;             /* that were called on it */
    struct slc_shim_comm *parent; /* that it is split off or shrunk from; NULL: none */
    struct slc_shim_comm *next;   /* in its thread's list of those that a group makes, or of those without a handle */
    _Atomic bool is_gone;         /* destroyed or aborted: its handle may come again for another one */
    _Atomic bool is_ready;        /* a thread has asked it what its row does not know, or does so now */
    ncclComm_t *out;              /* where its handle will be */
    uint64_t entry;               /* the index of the call that makes it */
    void *transforms;             /* of transforms/; NULL: none */
    _Atomic(uint64_t *) peers;    /* sends to each rank, then receives from each; NULL: none yet */
    _Atomic uint64_t launching;   /* of measure/launches.c, as the next one */
    struct slc_shim_launch_marks *marks;
} slc_shim_comm;

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
    slc_shim_comm *known; /* found by slc_shim_call_begin if `comm` is given; NULL: the shim has not seen it made */
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

/* A call that failed; what NCCL has not finished yet has not. */
static inline bool slc_shim_has_failed(ncclResult_t result)
{
    return result != ncclSuccess && result != ncclInProgress;
}
