/* The transforms of one communicator. Private to plugins/nccl/shim. NCCL allows one thread at a time on a communicator,
 * so nothing here is locked; another thread may abort it, which touches the atomic members alone. */
#pragma once

#include "plugins/nccl/shim/transforms.h"
#include "plugins/nccl/shim/transforms/asked.h"
#include "plugins/nccl/shim/transforms/device.h"
#include "plugins/nccl/shim/transforms/residues.h"
#include "plugins/nccl/shim/transforms/staging.h"

/* An all-reduce that waits for the end of its group, or for its exchange. */
typedef struct {
    const void *send;
    void *receive;
    uint64_t count, bytes;
    ncclDataType_t type;
    ncclRedOp_t op;
    cudaStream_t stream;
    uint64_t entry;
    bool compress;        /* else: fuse */
    bool done;            /* sent */
    bool fused;           /* goes to the memory, and from there to its place once the group has ended */
    uint64_t batch_bytes; /* in the memory, of all the calls that are fused with this one, their first; else 0 */
    uint64_t place;       /* in the memory, while it is being sent */
    uint64_t kept;        /* where its errors lie, if has_errors */
    bool has_errors;
} slc_shim_taken;

typedef struct slc_shim_transformed {
    slc_shim_comm *comm;
    slc_shim_recorder *recorder;
    _Atomic int refused; /* a slc_record_pass_reason of all calls; -1: none */
    _Atomic bool busy;   /* a thread has taken calls and not sent them all */
    _Atomic bool is_abandoned;
    const slc_shim_gpu *gpu;
    unsigned rank, ranks;
    slc_shim_staging_share share;
    slc_shim_cu_address memory; /* the share's: first the bytes of calls on their way, then the errors */
    uint64_t staging_bytes;     /* for what is on its way */
    bool has_window;            /* the program has made one: all calls pass */
    slc_shim_cu_event event;    /* to let streams wait for each other */
    slc_shim_cu_event used;     /* after the latest work on the memory, if was_used */
    bool was_used;
    struct {
        slc_shim_cu_stream stream;
        slc_shim_cu_address own_memory; /* for the words, if there is no share; freed with the communicator */
        uint64_t words[3];              /* that the other ranks are asked with */
        sluice_status status;
    } question;
    uint64_t compressible;       /* all-reduces that could have been compressed, so far */
    slc_shim_residues *residues; /* NULL: compression is off */
    slc_shim_taken *taken;       /* of the group that is being made */
    size_t taken_count, taken_capacity;
    struct slc_shim_transformed *next; /* in the thread's group */
    struct slc_shim_transformed *next_abandoned;
} slc_shim_transformed;

/* Compares the settings of all ranks, one all-reduce for each communicator of a list, in one group, and makes their
 * shares equally large. Those on which not all agree get refused. Communicators come with their shares, or with refused
 * set if this rank cannot have transforms. */
void slc_shim_transforms_agree(slc_shim_transformed *list);

/* Gathers what a communicator's group has to fuse, between the group's calls and its end. slc_shim_fuse_call then calls
 * NCCL for one of the taken calls: for the first one of those that are fused, or as it is for one that is alone.
 * slc_shim_fuse_scatter, after the group's end, brings the results to their places. */
ncclResult_t slc_shim_fuse_gather(slc_shim_transformed *t);
ncclResult_t slc_shim_fuse_call(slc_shim_transformed *t, slc_shim_taken *call);
ncclResult_t slc_shim_fuse_scatter(slc_shim_transformed *t);

/* Sends all that the communicators of a list have to compress, outside of any group. */
ncclResult_t slc_shim_compress_send(slc_shim_transformed *list);

/* True if the memory holds the packets of this all-reduce. All ranks get the same answer. */
bool slc_shim_compress_fits(const slc_shim_transformed *t, uint64_t count);

/* Enters the GPU, and lets the stream of the first taken call wait for the streams of the others and for the latest
 * work on the memory; slc_shim_transforms_leave is the reverse. *lead is that stream. */
sluice_status slc_shim_transforms_enter(slc_shim_transformed *t, cudaStream_t *lead);
sluice_status slc_shim_transforms_leave(slc_shim_transformed *t, cudaStream_t lead);

/* Makes NCCL's answer of a status. A failure is told in a line; all later calls of the communicator pass. */
ncclResult_t slc_shim_transforms_answer(slc_shim_transformed *t, const char *transform, sluice_status status);
/* Passes NCCL's own answer on as slc_shim_transforms_answer does a status. */
ncclResult_t slc_shim_transforms_nccl_answer(slc_shim_transformed *t, const char *transform, ncclResult_t result);

/* Keeps a call until its group ends, and answers it, if the thread is in a group and the order of launches asks for
 * that. With `t`, the call is the latest one that t has taken. False: the call is not kept. */
bool slc_shim_group_hold(slc_shim_call *call, slc_shim_transformed *t, ncclResult_t *result);

/* Ends the use of the taken calls. */
void slc_shim_transforms_forget_taken(slc_shim_transformed *t);

/* Notes how many bytes for what is on its way are in use. */
void slc_shim_transforms_note_staging(slc_shim_transformed *t, uint64_t used);

/* slc_shim_group_hold_destroy and the three after it implement the functions of these names in transforms.h. */
bool slc_shim_group_hold_destroy(slc_shim_thread *thread, const slc_shim_real *real, ncclRedOp_t op, ncclComm_t comm,
                                 ncclResult_t *result);
ncclResult_t slc_shim_group_end(slc_shim_recorder *recorder, slc_shim_thread *thread);
ncclResult_t slc_shim_group_ended(slc_shim_recorder *recorder, slc_shim_thread *thread, ncclResult_t result);
void slc_shim_group_is_simulated(slc_shim_thread *thread);

/* Called in a forked process: its one thread is in no group. */
void slc_shim_group_child(void);

/* Counts a call that passes unchanged. */
void slc_shim_transforms_count_passed(slc_shim_transformed *t, slc_record_pass_reason reason, uint64_t bytes);

static inline void slc_shim_row_add(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, *word + value, __ATOMIC_RELAXED);
}

/* The first error of two. */
static inline ncclResult_t slc_shim_worse(ncclResult_t first, ncclResult_t second)
{
    return slc_shim_has_failed(first) ? first : slc_shim_has_failed(second) ? second : first;
}
