/* The state of one rank's communication, which all files of the lane share, in the parts that belong together. The
 * thread that submits writes the queue's end and the program's activity; attaching writes what is attached and the
 * scratch, while no operation runs; the rest belongs to the communication thread, except where a member says
 * otherwise. */
#pragma once

#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/comm/comm.h"
#include "lib/comm/control/state.h"
#include "lib/comm/failure.h"
#include "lib/comm/neighbours.h"
#include "lib/comm/queue_counts.h"
#include "lib/comm/transport.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SLC_QUEUE = 4096, SLC_ACTIVE = 8, SLC_DEPTH_MAX = 16 };

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
    uint64_t began_ns, met_ns;             /* when it began; when the neighbours were at it too, 0: there are none */
    /* The first block whose receives are not posted yet, the first whose sends are not, and the first whose messages
     * are not all done. */
    uint64_t receiving, sending, finished;
    slc_block_state window[SLC_DEPTH_MAX];
} slc_active_op;

/* Operations as they are submitted, and how far they have come. */
typedef struct {
    slc_op *ops;                     /* ring */
    slc_queue_counts counts;         /* of operations */
    _Atomic uint32_t wire_submitted; /* submitted operations that communicate */
} slc_op_queue;

/* The activity of the program's threads, for heartbeats. The world's has that of groups and channels too. */
typedef struct {
    _Atomic(const char *) call, object, work; /* the arguments of slc_comm_call and slc_comm_work */
    _Atomic uint32_t calls;                   /* changes with each of those calls */
    _Atomic uint64_t submitter, waiter; /* the thread that submitted last; the thread that waits for operations, 0: for
                                           room only */
    pthread_mutex_t names;              /* held to read the names of calls and objects, and to end them */
} slc_program_activity;

/* The operations that have started and are not complete: those from `first` to before `taken`. */
typedef struct {
    uint32_t taken, first, wire;     /* operations begun; the oldest active one; communicating ones begun */
    _Atomic uint32_t wire_completed; /* communicating ones that are complete */
    uint64_t step_ns;                /* when the last step was made */
    slc_active_op ops[SLC_ACTIVE];   /* operation i at i modulo this */
} slc_active_ops;

/* The memory on which operations work, and the stream in which they do. */
typedef struct {
    sluice_stream stream;   /* device NULL: nothing attached */
    slc_lane_events events; /* of complete operations, while something is attached */
    slc_segment *segment;   /* attached; NULL: none */
    const char *base;       /* where the attached segment begins, and its bytes */
    uint64_t bytes;
} slc_attached;

/* The scratch in which blocks' messages arrive: `depth` slots (scratch.h). */
typedef struct {
    char *base;
    uint64_t bytes;
    uint32_t taken, freed; /* slots, counted up; slot i at i modulo depth */
    uint32_t idle;         /* a bit for each slot that is free again while an older one is not */
} slc_scratch;

/* The stage of the group of calls that is under way. */
typedef enum {
    SLC_GROUP_NONE,
    SLC_GROUP_LAUNCHING, /* its calls are made */
    SLC_GROUP_ALONE,     /* it is in the stream, and nothing follows before the device has done it */
    SLC_GROUP_LAUNCHED   /* what needs it may follow */
} slc_group_stage;

/* The state of a lane that works in stream order (stream_order.h). */
typedef struct {
    _Atomic bool on;       /* it is in use; chosen while nothing is attached */
    _Atomic bool attached; /* the transport has the stream */
    slc_group_stage stage; /* of the oldest active operation */
    uint64_t end;          /* the first block that its group does not move */
    slc_event done;        /* of a group that is alone, */
    uint64_t look_ns;      /* and when to look at it again; 0: there is none */
    uint64_t asked_ns;     /* when the transport was last asked whether it is well */
    uint64_t ill_ns;       /* when it first was not; 0: it is. What it then said: */
    sluice_status ill;
    char ill_line[SLC_ERROR_BYTES];
    _Atomic uint32_t host_waits; /* callers that wait until the device has done what queue.counts.wanted counts */
} slc_stream_order;

/* The arrays that a piece of copying or adding uses. */
typedef struct {
    const void **sources; /* [size], reused by every reduction */
    void **destinations;
    uint64_t chunk_bytes; /* about the bytes of a piece */
} slc_chunk_work;

/* The arrays that operations on rows use. */
typedef struct {
    struct slc_row_cursor *cursors; /* [size], reused by every piece of work (row_walk.h) */
    uint64_t *room;                 /* [size], likewise */
    uint64_t *cuts;                 /* [SLC_ACTIVE][depth + 1][size] where the chunks in an operation's window end */
} slc_row_state;

typedef struct slc_message slc_message;

/* The messages between this rank and those that it does not reach through memory. */
typedef struct {
    int *peers, peer_count; /* ranks that are not neighbours, in order from the next rank up */
    slc_message *all, *free_list;
    uint32_t count;
    uint32_t pending;                          /* of the world's, with those of groups and channels */
    uint32_t done;                             /* since creation */
    uint32_t blocks_receiving, blocks_sending; /* summed over all active operations */
    uint32_t blocks_finished;                  /* blocks that went by messages, since creation */
    uint64_t *tokens;                          /* [2 * size] contents of barrier messages and acknowledgements */
} slc_messages;

/* A peer that seems unreachable, the first one. Any thread may write it. */
typedef struct {
    _Atomic uint64_t since_ns; /* 0: none does */
    int rank;
    char why[200];
} slc_suspicion;

struct slc_comm {
    int rank, size;
    slc_comm *whole;    /* the world's communication, which may be this one; the other is a group's */
    uint32_t number;    /* of a group; 0: the world's */
    const int *members; /* of a group: the ranks of the world that are its ranks 0 to size - 1; NULL: the world's */
    slc_failure *failure;
    slc_neighbours *neighbours;
    slc_transport *transport;
    slc_history *history;
    bool any_messages; /* some pair of ranks of this world needs messages */
    uint32_t depth;

    slc_op_queue queue;
    slc_program_activity program;
    slc_active_ops active;
    slc_attached attached;
    slc_scratch scratch;
    slc_chunk_work work;
    slc_row_state rows;
    slc_messages messages;
    slc_stream_order stream_order;
    slc_suspicion suspicion;

    slc_gate quiet; /* 1: the world has failed, and this rank no longer touches the caller's memory */
    _Atomic uint64_t bytes_sent;
    uint64_t last_over_ns;                     /* when the last communicating operation was complete */
    _Atomic uint64_t carried_ns, late_ns, met; /* slc_comm_use */
};

/* Threads of this process have different ones; never 0. */
static inline uint64_t slc_thread_number(void)
{
    return (uint64_t)pthread_self();
}

/* Messages for people name ranks as the world does, and so do transports. */
static inline int slc_rank_in_world(const slc_comm *comm, int rank)
{
    return comm->members ? comm->members[rank] : rank;
}

static inline slc_lane_words *slc_own_words(const slc_comm *comm)
{
    return &comm->neighbours->page->lanes[comm->number];
}

static inline const slc_lane_words *slc_peer_words(const slc_comm *comm, int neighbour)
{
    return &comm->neighbours->peers[neighbour].page->lanes[comm->number];
}

static inline bool slc_counts_passed(const slc_gate_count *counts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!slc_gate_passed(counts[i].gate, counts[i].value)) return false;
    return true;
}

static inline slc_active_op *slc_active_op_at(slc_comm *comm, uint32_t index)
{
    return &comm->active.ops[index % SLC_ACTIVE];
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
    return (char *)comm->neighbours->peers[rank].segment.base + ((const char *)own - comm->attached.base);
}
