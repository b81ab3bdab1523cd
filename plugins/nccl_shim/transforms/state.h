/* The transforms of one communicator. Private to plugins/nccl_shim. NCCL allows one thread at a time on a communicator,
 * so nothing here is locked. */
#ifndef SLC_SHIM_TRANSFORMS_STATE_H
#define SLC_SHIM_TRANSFORMS_STATE_H

#include "plugins/nccl_shim/call.h"
#include "plugins/nccl_shim/transforms/device.h"
#include "plugins/nccl_shim/transforms/residues.h"

/* What the user asked for, the same for all communicators of the process. */
typedef struct {
    uint64_t fuse, compress; /* bytes; 0: off */
    uint64_t staging;        /* bytes of device memory that a communicator takes */
    unsigned compress_after; /* all-reduces of a communicator that are sent whole before the first compressed one */
} slc_transforms_settings;

/* An all-reduce that waits for the end of its group. */
typedef struct {
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    cudaStream_t stream;
    uint64_t entry;
    uint64_t bytes;
    bool compress; /* else: fuse */
    bool done;
    uint64_t place;        /* in the staging, while it is being sent */
    slc_residue_row *kept; /* NULL: its errors have no place */
} slc_taken;

typedef struct slc_transforms {
    slc_shim_comm *comm;
    slc_recorder *recorder;
    const slc_shim_gpu *gpu;
    unsigned rank, ranks;
    bool broken; /* a call of a transform failed */
    _Atomic bool busy;
    slc_cu_address memory;   /* settings.staging bytes: first the staging, then the errors */
    uint64_t staging_bytes;  /* of them for what is on its way */
    slc_cu_event used;       /* behind the last work that uses the memory */
    cudaStream_t last;       /* its stream, where was_used */
    bool was_used;
    uint64_t compressible;   /* all-reduces that could have been compressed, so far */
    slc_residues *residues;  /* NULL: compression is off */
    bool warned;             /* that errors do not fit */
    slc_taken *taken;        /* of the group that is being made */
    size_t taken_count, taken_capacity;
    struct slc_transforms *next; /* in the thread's group */
} slc_transforms;

extern slc_transforms_settings slc_transforms_asked;

/* Compares the settings of all ranks of communicators that were just made; those of which all agree keep what `made`
 * points to. One all-reduce each, in one group. */
void slc_transforms_agree(slc_transforms *const *made, bool *agreed, unsigned count);

/* Sends what a communicator's group has to fuse. To be called between the group's calls and its end in NCCL; what is not
 * fused is called in the group as it is. slc_fuse_scatter, after that end, puts the results into their places. */
ncclResult_t slc_fuse_gather(slc_transforms *t);
ncclResult_t slc_fuse_scatter(slc_transforms *t);

/* Sends all that the communicators of a list have to compress, outside of any group. */
ncclResult_t slc_compress_send(slc_transforms *list);

/* Lets the stream of a group's first call wait for all others that the group's taken calls name, and for the last use
 * of the memory; `leave` does the reverse. Returns the stream by `lead`. */
sluice_status slc_transforms_join(slc_transforms *t, cudaStream_t *lead);
sluice_status slc_transforms_leave(slc_transforms *t, cudaStream_t lead);

/* Says in a line what failed, once, and lets all later calls of the communicator pass. Returns `result`. */
ncclResult_t slc_transforms_break(slc_transforms *t, ncclResult_t result);

/* Counts a call that passes unchanged. */
void slc_transforms_count_passed(slc_transforms *t, slc_record_pass_reason reason, uint64_t bytes);
/* Sets a flag of a call's entry, if the ring still has it. */
void slc_transforms_flag(slc_transforms *t, uint64_t entry, uint32_t flag);

static inline void slc_add64(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, *word + value, __ATOMIC_RELAXED);
}

#endif
