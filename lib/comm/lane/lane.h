/* The lane: the queue of operations and the few that are active at a time, in order. An operation starts when its gates
 * have passed and no earlier operation still works on bytes that it touches; operations complete in order. Submission
 * apart, everything here runs on the communication thread. */
#ifndef SLC_COMM_LANE_H
#define SLC_COMM_LANE_H

#include "lib/base/status.h"
#include "lib/comm/comm.h"
#include "lib/comm/control/control.h"
#include "lib/comm/failure.h"
#include "lib/comm/neighbours.h"
#include "lib/comm/transport.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SLC_QUEUE = 4096, SLC_ACTIVE = 8, SLC_DEPTH_MAX = 16 };
/* A failure raises each count by this much, so that every wait for the count ends. */
enum { SLC_FAR_BEYOND = 1 << 30 };

typedef struct {
    const char *low, *high; /* bytes [low, high) */
} slc_byte_range;

/* The bytes that an operation touches. */
typedef struct {
    slc_byte_range read, write[2];
} slc_spans;

/* A block whose messages are on their way. */
typedef struct {
    uint32_t contributions; /* to a sum, that have not arrived yet */
    uint32_t results;       /* parts or acknowledgements that have not arrived yet */
    uint32_t sends;         /* that are not done yet */
    bool sent, reduced;     /* its first messages are posted; its sum is made */
    uint32_t slot;          /* its slot of scratch */
} slc_block_state;

/* An operation that has started and is not complete. */
typedef struct {
    slc_op op;
    uint32_t index, wire; /* its number among all operations, and among those that communicate */
    uint64_t signature;
    slc_spans spans;
    bool skipped;    /* *op.skip was true when it started */
    bool past_cache; /* what slc_op_goes_past_cache said when it started */
    uint64_t end_block;
    bool open;                   /* rows: there may be blocks from end_block on */
    bool peers_ready, work_done; /* neighbours' buffers may be used (rows: and all lists are here); this rank no longer
                                    uses them */
    uint64_t block, offset;      /* where the work is: the next block, and how many of its elements are done */
    int step;                    /* gather: whose part is copied, counted from this rank on */
    uint32_t tensor; /* compressed exchange: the tensor at work; `offset` counts in this rank's chunk of it */
    int64_t bins[SLC_NORM_BINS]; /* compressed exchange: norm bins of that tensor's average */
    bool charged;                /* a throttled transport has been told of the bytes that went through memory */
    uint64_t direct_sent, direct_received; /* rows: bytes that went through neighbours' memory instead of messages */
    uint64_t due_ns;                       /* the operation does not complete before */
    /* The first block whose receives, whose sends, are not posted yet; the first whose messages are not all done. */
    uint64_t receiving, sending, finished;
    slc_block_state window[SLC_DEPTH_MAX];
} slc_active_op;

typedef struct slc_message slc_message;

/* A message that the transport has begun and not ended. */
typedef struct {
    int peer;                  /* to which it goes or from which it comes */
    uint32_t operation, place; /* of which communicating operation; of two in one the earlier one has the lower place */
    uint64_t bytes;
} slc_open_message;

struct slc_comm {
    int rank, size;
    slc_failure *failure;
    slc_neighbours *neighbours;
    slc_transport *transport;
    slc_history *history;
    int *message_peers, message_peer_count; /* ranks that are not neighbours, in order from the next rank up */
    bool any_messages;                      /* some pair of ranks of this world needs messages */
    uint32_t depth;

    slc_op *queue;                   /* ring */
    _Atomic uint32_t submitted;      /* operations */
    _Atomic uint32_t wire_submitted; /* those of them that communicate */
    slc_gate completed;
    _Atomic uint32_t finished;        /* operations that are complete; a failure does not raise it */
    _Atomic uint32_t waiting, wanted; /* callers in slc_comm_wait, and the count that the last of them waits for */
    slc_gate quiet;                   /* 1: the world has failed, and this rank no longer touches the caller's memory */
    _Atomic uint64_t bytes_sent;

    /* The activity of the program's threads, for heartbeats. */
    _Atomic(const char *) call, object, work; /* the arguments of slc_comm_call and slc_comm_work */
    _Atomic uint32_t calls;                   /* changes with each of those calls */
    _Atomic uint64_t submitter, waiter; /* the thread that submitted last; the thread that waits for operations, 0: for
                                           room only */
    pthread_mutex_t names;              /* held to read the names of calls and objects, and to end them */

    uint32_t taken, first, wire; /* operations begun; the oldest active one; communicating ones begun */
    _Atomic uint32_t wire_completed;
    uint64_t step_ns;               /* when the last step was made */
    slc_active_op runs[SLC_ACTIVE]; /* operation i at i modulo this */

    sluice_stream stream;   /* device NULL: nothing attached */
    slc_lane_events events; /* of complete operations, while something is attached */
    slc_segment *segment;   /* attached; NULL: none */
    const char *base;       /* where the attached segment begins, and its bytes */
    uint64_t bytes;
    char *scratch;
    uint64_t scratch_bytes;
    const void **sources; /* [size], reused by every reduction */
    void **destinations;
    uint64_t chunk_bytes;
    struct slc_row_cursor *row_cursors; /* [size], reused by every piece of work */
    uint64_t *row_room;                 /* [size], likewise */
    uint64_t *row_cuts; /* [SLC_ACTIVE][depth + 1][size] where the chunks in an operation's window end */

    slc_message *messages, *free_messages;
    uint32_t message_count, messages_pending;
    uint32_t messages_done;                    /* since creation */
    uint32_t blocks_receiving, blocks_sending; /* summed over all active operations */
    uint32_t blocks_finished;                  /* blocks that went by messages, since creation */
    uint32_t scratch_taken, scratch_freed;     /* slots, counted up; slot i at i modulo depth */
    uint32_t scratch_idle;                     /* a bit for each slot that is free again while an older one is not */
    uint64_t *tokens;                          /* [2 * size] contents of barrier messages and acknowledgements */
    _Atomic uint64_t suspect_ns;               /* since when a peer has seemed unreachable; 0: none does */
    int suspect_rank;
    char suspect_why[200];
};

/* Threads of this process have different ones; never 0. */
static inline uint64_t slc_thread_number(void)
{
    return (uint64_t)pthread_self();
}

sluice_status slc_lane_init(slc_comm *comm, int rank, int size, slc_failure *failure, slc_neighbours *neighbours,
                            slc_transport *transport, slc_history *history);
void slc_lane_fini(slc_comm *comm);

/* Does what can be done without waiting, with at most one chunk of copying or adding. True if anything was done. */
bool slc_lane_step(slc_comm *comm, uint64_t now_ns);

/* When the next held-back completion is due; UINT64_MAX: none. */
uint64_t slc_lane_due(const slc_comm *comm);

static inline slc_active_op *slc_active_op_at(slc_comm *comm, uint32_t index)
{
    return &comm->runs[index % SLC_ACTIVE];
}

static inline bool slc_ranges_overlap(slc_byte_range a, slc_byte_range b)
{
    return a.low < b.high && b.low < a.high;
}

static inline const char *slc_op_name(const slc_op *op)
{
    return op->what ? op->what : "operation";
}

/* Fails the world with `status` and the calling thread's last error, which the operation's name precedes. */
static inline void slc_op_fail(slc_comm *comm, const slc_op *op, sluice_status status)
{
    slc_failure_set(comm->failure, status, SLC_TELL_OWN, "%s: %s", slc_op_name(op), sluice_last_error());
}

/* The place in a neighbour's segment that corresponds to `own` in this rank's. */
static inline char *slc_at_neighbour(const slc_comm *comm, int rank, const void *own)
{
    return (char *)comm->neighbours->peers[rank].segment.base + ((const char *)own - comm->base);
}

/* For heartbeats. Whether no further operation begins before the program acts: */
bool slc_lane_halted(const slc_comm *comm);
/* The number of communicating operations among the first `index`. */
uint32_t slc_lane_needed(const slc_comm *comm, uint32_t index);
/* The name of the oldest operation that is not complete; NULL: it has no name, or there is none. */
const char *slc_lane_next_name(const slc_comm *comm);

/* submit.c: checks an operation against the world and what is attached. Errors: ARGUMENT, ORDER, UNSUPPORTED. */
sluice_status slc_op_check(const slc_comm *comm, const slc_op *op);

/* spans.c: the bytes that an operation's blocks touch; whether a buffer lies in the attached arena. */
slc_spans slc_op_spans(const slc_comm *comm, const slc_op *op);
bool slc_in_arena(const slc_comm *comm, const void *buffer, uint64_t bytes);
/* Whether the operation's results should be stored past the cache: the ranks of this host touch more bytes for it than
 * a cache keeps, and the results replace nothing that is read. */
bool slc_op_goes_past_cache(const slc_comm *comm, const slc_op *op);

/* signature.c: ranks whose operations differ in kind, type, shape, place or in being skipped find other signatures. */
uint64_t slc_op_signature(const slc_comm *comm, const slc_op *op, bool skipped);
/* Whether all neighbours have begun this operation. MISMATCH fails the world if one has begun another operation. */
bool slc_peers_ready(slc_comm *comm, slc_active_op *run);

/* work.c: adds or copies one chunk of an operation. True if it did. */
bool slc_work_step(slc_comm *comm, slc_active_op *run);

/* messages.c */
sluice_status slc_messages_init(slc_comm *comm);
/* Whether the link stays busy with another block when one ends. */
bool slc_messages_plenty(const slc_comm *comm);
/* The message on its way that comes first in the order in which operations need them. False: there is none. */
bool slc_messages_oldest(const slc_comm *comm, slc_open_message *out);
/* Posts the sends and receives that may be posted. True if there were any. */
bool slc_messages_step(slc_comm *comm);
/* Notes that this rank's part of a block has its sum: its scratch is free, and the result goes to who needs it. */
void slc_messages_reduced(slc_comm *comm, slc_active_op *run, uint64_t block);
/* Whether all contributions of a block are here. */
bool slc_messages_arrived(slc_comm *comm, slc_active_op *run, uint64_t block);
/* Compressed exchange: where the packet lies that `rank` sent for this rank's chunks. */
char *slc_messages_packet(const slc_comm *comm, const slc_active_op *run, int rank);
/* Whether the messages of all blocks are done. */
bool slc_messages_finished(const slc_comm *comm, const slc_active_op *run);
/* Notes that a peer cannot be reached, which the control connection may explain. Keeps the first one. Any thread. */
void slc_messages_suspect(slc_comm *comm, int rank, const char *why);

/* scratch.c */
uint64_t slc_scratch_slot_bytes(int size, uint64_t block_bytes); /* bytes of a slot that a block needs */
/* A peer's part of a block's slot. Its length is a multiple of 64 and no less than a part of any block takes. */
char *slc_scratch_part(const slc_comm *comm, const slc_active_op *run, uint64_t block, int peer);
uint64_t slc_scratch_part_bytes(const slc_comm *comm);
bool slc_scratch_left(const slc_comm *comm); /* whether a slot is free */
uint32_t slc_scratch_take(slc_comm *comm);
void slc_scratch_free(slc_comm *comm, uint32_t slot);

#endif
