/* The lane: the queue of operations and the few that are in work at a time, in order. An operation starts when its
 * gates have passed and nothing it touches is in the hands of an earlier one; it completes in order. Everything here
 * but submission runs on the communication thread. */
#ifndef SLC_COMM_LANE_H
#define SLC_COMM_LANE_H

#include "lib/comm/comm.h"
#include "lib/comm/world/control.h"
#include "lib/comm/world/failure.h"
#include "lib/comm/world/neighbours.h"
#include "lib/comm/transport.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SLC_QUEUE = 4096, SLC_ACTIVE = 8, SLC_DEPTH_MAX = 16 };

typedef struct {
    const char *low, *high; /* bytes [low, high) */
} slc_byte_range;

/* What an operation touches. */
typedef struct {
    slc_byte_range read, write[2];
} slc_spans;

/* A block whose messages are on their way. */
typedef struct {
    uint32_t contributions; /* that are still to arrive, to be added up */
    uint32_t results;       /* parts or acknowledgements that are still to arrive */
    uint32_t sends;         /* that are not done */
    bool sent, reduced;     /* its first messages are posted; its sum is made */
    uint32_t slot;          /* of scratch */
} slc_block_state;

/* An operation in work. */
typedef struct {
    slc_op op;
    uint32_t index, wire; /* its number; among those that communicate */
    uint64_t signature;
    slc_spans spans;
    bool skipped; /* as op.skip says */
    uint64_t end_block;
    bool open;                   /* rows: there may be blocks from end_block on */
    bool peers_ready, work_done; /* neighbours' buffers may be used (rows: and all lists are here); this rank is through
                                    with them */
    uint64_t block, offset;      /* where the work is: next block, elements of it done */
    int step;                    /* gather: which peer's part */
    uint32_t tensor;             /* compressed exchange: where the work is, `offset` in its own chunk */
    int64_t bins[SLC_NORM_BINS]; /* compressed exchange: of that tensor's average */
    bool charged;                /* for bytes that went through memory */
    uint64_t direct_sent, direct_received; /* rows: bytes that neighbours' memory saves messages */
    uint64_t due_ns;                       /* completion is not shown before */
    uint64_t receiving, sending,
        finished; /* blocks whose receives are posted, sends are posted, messages are through */
    slc_block_state window[SLC_DEPTH_MAX];
} slc_active_op;

typedef struct slc_message slc_message;

struct slc_comm {
    int rank, size;
    slc_failure *failure;
    slc_neighbours *neighbours;
    slc_transport *transport;
    slc_history *history;
    int *message_peers, message_peer_count; /* ranks that are not neighbours, in order from the next one up */
    bool any_messages;                      /* some pair of ranks of this world needs messages */
    uint32_t depth;

    slc_op *queue;                   /* ring */
    _Atomic uint32_t submitted;      /* operations */
    _Atomic uint32_t wire_submitted; /* of those, that communicate */
    slc_gate completed;
    _Atomic uint32_t finished;        /* operations that are complete; a failure does not raise it */
    _Atomic uint32_t waiting, wanted; /* callers in slc_comm_wait, and what the last of them waits for */
    slc_gate quiet; /* 1: after a failure, nothing of this rank touches the caller's memory any more */
    _Atomic uint64_t bytes_sent;

    /* What the program's threads are doing, for heartbeats. */
    _Atomic(const char *) call, object, work; /* its last call and what of; what takes its time there, NULL: nothing */
    _Atomic uint32_t calls;                   /* changes with each of them */
    _Atomic uint64_t submitter, waiter; /* threads: that submitted last; that waits for operations, 0: for room only */
    pthread_mutex_t names;              /* held while the names of calls and objects are read, and to end them */

    uint32_t taken, first, wire; /* operations begun; the oldest in work; communicating ones begun */
    _Atomic uint32_t wire_completed;
    uint64_t step_ns;               /* when the last step was made */
    slc_active_op runs[SLC_ACTIVE]; /* operation i at i modulo this */

    slc_stream stream;    /* device NULL: nothing attached */
    slc_segment *segment; /* attached; NULL: none */
    const char *base;     /* of the attached segment */
    uint64_t bytes;
    char *scratch;
    uint64_t scratch_bytes;
    const void **sources; /* [size], reused by every reduction */
    void **destinations;
    uint64_t chunk_bytes;
    struct slc_row_cursor *row_cursors; /* [size], reused by every piece of work */
    uint64_t *row_room;                 /* [size], likewise */
    uint64_t *row_cuts; /* [SLC_ACTIVE][depth + 1][size] where chunks end, in each operation's window of them */

    slc_message *messages, *free_messages;
    uint32_t messages_pending;
    uint32_t blocks_receiving, blocks_sending; /* over all operations in work */
    uint32_t blocks_finished;                  /* that went by messages, since creation */
    uint32_t scratch_taken, scratch_freed;     /* slots, counted up; slot i at i modulo depth */
    uint32_t scratch_idle;                     /* bit for each slot that is free again behind one that is not */
    uint64_t *tokens;                          /* [2 * size] contents of barrier messages and acknowledgements */
    _Atomic uint64_t suspect_ns;               /* since when a peer seems unreachable; 0: none */
    int suspect_rank;
    char suspect_why[200];
};

sluice_status slc_lane_init(slc_comm *comm, int rank, int size, slc_failure *failure, slc_neighbours *neighbours,
                            slc_transport *transport, slc_history *history);
void slc_lane_fini(slc_comm *comm);

/* Does what can be done without waiting, at most one chunk of copying or adding. True if anything was done. */
bool slc_lane_step(slc_comm *comm, uint64_t now_ns);

/* When the next held-back completion is due; UINT64_MAX: none. */
uint64_t slc_lane_due(const slc_comm *comm);

static inline slc_active_op *slc_active_op_at(slc_comm *comm, uint32_t index)
{
    return &comm->runs[index % SLC_ACTIVE];
}

/* The same place in a neighbour's segment. */
static inline char *slc_at_neighbour(const slc_comm *comm, int rank, const void *own)
{
    return (char *)comm->neighbours->peers[rank].segment.base + ((const char *)own - comm->base);
}

/* For heartbeats: does nothing more begin before the program acts? How many communicating operations are there among
 * the first `index`? What is the oldest one that is not complete called; NULL: it has no name, or there is none. */
bool slc_lane_halted(const slc_comm *comm);
uint32_t slc_lane_needed(const slc_comm *comm, uint32_t index);
const char *slc_lane_next_name(const slc_comm *comm);

/* submit.c: checks an operation against the world and what is attached. Errors: ARGUMENT, ORDER, UNSUPPORTED. */
sluice_status slc_op_check(const slc_comm *comm, const slc_op *op);

/* work.c: adds or copies one chunk of an operation. True if it did. */
bool slc_work_step(slc_comm *comm, slc_active_op *run);
/* Whether all neighbours have begun this operation, and with the same shape. */
bool slc_peers_ready(slc_comm *comm, slc_active_op *run);
uint64_t slc_op_signature(const slc_comm *comm, const slc_op *op, bool skipped);

/* messages.c */
sluice_status slc_messages_init(slc_comm *comm);
bool slc_messages_plenty(const slc_comm *comm); /* when a block has ended, another one keeps the link busy */
bool slc_messages_step(slc_comm *comm);         /* posts what may be posted */
void slc_messages_reduced(slc_comm *comm, slc_active_op *run, uint64_t block); /* a block's own part has its sum */
bool slc_messages_arrived(slc_comm *comm, slc_active_op *run,
                          uint64_t block); /* all contributions of a block are here */
/* Of a compressed exchange: what a rank sent about the own chunk. */
const char *slc_messages_packet(const slc_comm *comm, const slc_active_op *run, int rank);
bool slc_messages_finished(const slc_comm *comm, const slc_active_op *run);
void slc_messages_suspect(slc_comm *comm, int rank, const char *why);

/* scratch.c */
uint64_t slc_scratch_slot_bytes(int size, uint64_t block_bytes); /* that a block needs */
/* A peer's part of a block's slot. Its length is a multiple of 64, at least what a part of any block takes. */
char *slc_scratch_part(const slc_comm *comm, const slc_active_op *run, uint64_t block, int peer);
uint64_t slc_scratch_part_bytes(const slc_comm *comm);
bool slc_scratch_left(const slc_comm *comm); /* a slot may be taken */
uint32_t slc_scratch_take(slc_comm *comm);
void slc_scratch_free(slc_comm *comm, uint32_t slot);

#endif
