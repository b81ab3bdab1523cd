/* Asynchronous block collectives, which the rank's communication thread carries out.
 *
 * Every rank submits the same operations in the same order, and they start in that order. An operation may wait for two
 * gates before it starts (its data, its memory); a later operation never overtakes it. Completion is counted in order
 * too: operation k is complete when `completed` has reached k + 1. The next operations may start before this one is
 * complete, so that the wire does not idle, but only if they touch different bytes (or both only read them). A caller
 * that depends on what an operation's hooks do must wait for the count, which is raised after they have run. A failure
 * of the world raises `completed` far beyond every operation, so ask slc_comm_wait or sluice_world_check.
 *
 * Geometry: a buffer of `elements` (a multiple of 16 * N) is cut in base blocks of `block_elements` (a multiple of
 * 16 * N; the last block may be shorter, but is still a multiple). Rank r owns the r-th N-th of every block;
 * lib/base/ownership.h has the formulas of the whole and the shard layout.
 *
 * Sums: each element is added in fp32 in rank order, then scaled once, then rounded once to the type of the result, so
 * the bits are the same on every path and for every block size; except if an operation says that any order will do.
 * Memory: scratch is given once (slc_comm_attach), and no operation allocates anything. Buffers must lie in the
 * attached arena, at the same offset on every rank: ranks of one host then use each other's memory. */
#pragma once

#include "lib/base/gate.h"
#include "lib/base/row_list.h"
#include "lib/device/device.h"
#include "lib/device/lane_events.h"
#include "lib/kernels/compress/compress_group.h"

#include <sluice/dtype.h>
#include <sluice/status.h>
#include <sluice/world.h>

typedef struct slc_comm slc_comm;

typedef enum {
    SLC_REDUCE_SCATTER,      /* src whole -> dst own part (in its place of the whole layout, or in the shard layout) */
    SLC_ALL_GATHER,          /* src own part (whole or shard layout) -> dst whole */
    SLC_ALL_REDUCE,          /* src whole == dst whole: every rank gets the scaled sum of everything */
    SLC_BROADCAST,           /* src == dst whole, from `root` */
    SLC_COMPRESSED_EXCHANGE, /* packets of a group of tensors (compress_group.h), made with slc_exchange_op */
    SLC_GATHER_ROWS,         /* src own part (whole or shard layout) -> dst: those rows of the whole layout that this
                                rank's list names; made with slc_gather_rows_op */
    SLC_REDUCE_ROWS,         /* src: the rows that this rank's list names -> dst own part (whole or shard layout) +=;
                                made with slc_reduce_rows_op */
    SLC_BARRIER,             /* no data */
    SLC_CALL /* no communication: `call` runs on the communication thread as soon as it is its turn to start,
                whether or not earlier operations are in flight; nothing else goes on meanwhile, so it should be short
              */
} slc_op_kind;

typedef enum { SLC_WHOLE, SLC_SHARD } slc_layout;

/* The rows of a table that each rank touches, for an operation on rows. A table has rows of row_elements elements in
 * the whole layout, row r at r * row_elements; its blocks are cut and owned as the geometry above says, so a row may
 * have several owners. `lists` lies in the attached arena at a multiple of 64, in the same place on every rank, and
 * holds one slc_row_list for each rank, slc_row_list_bytes(most) apart. This rank's own list, number `rank`, must be
 * written when the operation starts (its `start` hook may write it) and stay until the operation is complete; the
 * operation fills the other lists as far as it needs them. The struct is kept by pointer until then. A skipped
 * operation does not look at lists. */
typedef struct {
    uint64_t row_elements, row_count; /* row_count * row_elements is at most the table's elements */
    uint64_t most;                    /* the most rows that a list may have; the same on every rank */
    void *lists;
} slc_rows;

/* A count that a gate must reach. */
typedef struct {
    slc_gate *gate;
    uint32_t value;
} slc_gate_count;

typedef struct slc_op slc_op;
struct slc_op {
    slc_op_kind kind;
    sluice_dtype dtype; /* sums take SLUICE_FP32 and SLUICE_BF16, an all-reduce SLUICE_INT64 and SLUICE_FP64 too; gather
                        and broadcast take any type */
    bool widen;         /* reduce_scatter of bfloat16: dst is float32, so the sum is not rounded again */
    uint64_t elements, block_elements;
    uint64_t first_block, block_count; /* which base blocks this operation moves */
    const void *src;                   /* where the buffer's block 0 begins, whatever first_block is; so too dst */
    void *dst;
    slc_layout src_layout, dst_layout;
    float scale;     /* reductions of float32 and bfloat16: the sum is multiplied by it once */
    bool accumulate; /* reduce_scatter: dst += scale * sum instead of dst = */
    int root;
    /* These two matter on a device that runs ahead, with other ranks; elsewhere they change nothing. */
    bool any_order; /* a sum may be the transport's own, in an order of additions that it chooses */
    bool alone;     /* nothing follows the communication, not even the operation's own kernels, before the device has
                       done it: for kernels that are launched for the first time, which may wait for all of the device */
    const slc_compress_group *group; /* SLC_COMPRESSED_EXCHANGE */
    const slc_residue *servers;
    const sluice_step_words *words; /* SLC_COMPRESSED_EXCHANGE on a device that runs ahead: NULL, or the servers change
                                       nothing if they say to skip; memory of the device */
    const slc_rows *rows;           /* SLC_GATHER_ROWS, SLC_REDUCE_ROWS */

    slc_gate *wait[2]; /* the operation starts only when wait[i] has reached wait_value[i]; NULL: no condition */
    uint32_t wait_value[2];
    const slc_lane_events *wait_events[2]; /* of the lane that raises wait[i], for the stream to wait for; NULL: what
                                              is counted is done, or is this lane's own */
    const bool *skip; /* NULL, or read once, when the waits have passed and the operation starts; the same on every
                         rank. If it is true nothing moves or changes, no other rank is waited for, and `call` is left
                         out; `start` and `end` run, and the operation counts as complete in its order. An earlier
                         operation's hook may set it if this operation waits for that one's completion. */

    /* Hooks, which all run on the communication thread; NULL: none. An error that one returns fails the world. */
    sluice_status (*start)(void *context); /* runs when the waits have passed and the operation starts (the engine
                                              claims memory here) */
    sluice_status (*call)(void *context);  /* SLC_CALL: the work, right after `start`; else runs at completion, in
                                              order */
    sluice_status (*end)(void *context);   /* runs at completion, in order, before the operation is counted */
    void *context;
    const char *what; /* the operation's name in messages: "layer h.3 reduce_scatter"; kept by pointer */

    /* Further counts that must be reached before it starts: those of channels (channels.h) and of other lanes
     * (groups.h). Kept by pointer until it starts. */
    const slc_gate_count *counts;
    uint32_t count_count;
};

/* Makes a compressed exchange of all tensors of a group. Packet k of `packets` (ranks * stride bytes, from
 * slc_compress_worker) goes to rank k, which averages its chunks and compresses the averages again with the errors of
 * `servers`, one per tensor; every rank gets all results, with equal bits, as `results` for slc_compress_apply. One
 * message goes to each rank and one comes back, so an exchange takes two latencies; for V bytes of fp32 (padding
 * included) each rank sends (V/32) 2 (N-1)/N bytes and the scales. `results` has slc_comm_exchange_bytes. Both buffers
 * lie in the attached arena, at the same place on every rank, and do not overlap. The servers' residues are this rank's
 * alone and may lie anywhere; no other operation on them may be submitted before this one is complete, and until then
 * group and servers are kept by pointer. */
slc_op slc_exchange_op(const slc_compress_group *group, const void *packets, void *results, const slc_residue *servers);

/* Bytes of `results`: ranks * stride, and as much again if some ranks need messages or all use a transport's
 * collectives: packets then arrive after the results' part of the buffer. The same on every rank. */
uint64_t slc_comm_exchange_bytes(const slc_comm *comm, const slc_compress_group *group);

/* Makes a gather of the rows that this rank's list names, from a table of `elements` in base blocks of
 * `block_elements`: the list's row number i goes to dst + i * row_elements. If the rows take V bytes, a rank receives
 * V (N-1)/N bytes and sends about as much; a first message to each rank carries the list. Nothing is allocated: what
 * messages need besides src and dst lies in the scratch (as much as a reduction of one base block needs). Table, rows
 * (`most` of them) and lists may not overlap. Errors at submission: ARGUMENT (a buffer outside the arena, shapes that
 * do not fit, too little scratch). At the start FORMAT fails the world and says which list is too long, is not
 * ascending, or names a row that is not there. */
slc_op slc_gather_rows_op(const slc_rows *rows, sluice_dtype dtype, uint64_t elements, uint64_t block_elements,
                          const void *src, slc_layout src_layout, void *dst);

/* Makes an operation that adds the rows of every rank's list to their owners' parts: to each element of its own part of
 * dst whose row some rank has, the owner adds scale * (the fp32 sum over the ranks that have the row, in rank order),
 * rounded once to the type of dst. `dtype` is src's type; dst_dtype is float32, or dtype. Other elements of dst are not
 * touched. Costs and errors are those of slc_gather_rows_op. */
slc_op slc_reduce_rows_op(const slc_rows *rows, sluice_dtype dtype, sluice_dtype dst_dtype, uint64_t elements,
                          uint64_t block_elements, const void *src, void *dst, slc_layout dst_layout, float scale);

/* The communication of a world: each world has one slc_comm and owns it. */
slc_comm *slc_world_comm(sluice_world *world);

/* A runtime holds its world, so that a program which destroys the world first does not take it away from under the
 * runtime: the world is then freed with the last that holds it. One thread calls these and sluice_world_destroy. */
void slc_world_hold(sluice_world *world);
void slc_world_release(sluice_world *world);

/* Chooses where operations work from the next attach on: in memory of the host, or of a device that runs ahead. There,
 * with more than one rank, they are calls of the transport's collectives in the order of the communication stream: sums
 * of float32, bfloat16, int64 and float64, gathers and broadcasts; barriers, rows and compressed exchanges are not
 * among them. All ranks choose alike, while nothing is attached and before slc_comm_scratch_bytes is asked. Errors:
 * UNSUPPORTED (the world's transport lacks such collectives, or has nothing else). */
sluice_status slc_comm_choose(slc_comm *comm, const slc_device *device);

/* Lets peers of this host map `segment` and keeps `scratch` (inside it) for messages. Collective and blocking. One
 * segment is attached at a time: a second attach waits until all operations are complete and replaces the first; NULL
 * detaches, without the other ranks. `segment` must stay where it is until it is detached; when a transport could not
 * be stopped from using it after a failure, it is marked as kept. Ranks must give segments of equal size and the
 * scratch_bytes that slc_comm_scratch_bytes says. Errors: MISMATCH (sizes differ between ranks), those of mapping, and
 * the world's failure. */
sluice_status slc_comm_attach(slc_comm *comm, slc_segment *segment, void *scratch, uint64_t scratch_bytes);
bool slc_comm_is_attached(const slc_comm *comm);

/* Does as slc_comm_attach, for segments that may differ in size between ranks, as those of different stages of a
 * pipeline do. The buffers of an operation of all ranks lie at the same offset on every rank, those of a group's
 * operation (groups.h) at the same offset on its members, those of a transfer (channels.h) anywhere. */
sluice_status slc_comm_attach_apart(slc_comm *comm, slc_segment *segment, void *scratch, uint64_t scratch_bytes);

/* Bytes of scratch that operations on base blocks of at most `block_bytes` need: 0 when every peer is reached directly,
 * else depth * block_bytes * (N-1)/N, rounded up. The same on every rank. In memory of a device more of it makes longer
 * groups of calls. */
uint64_t slc_comm_scratch_bytes(const slc_comm *comm, uint64_t block_bytes);

/* Returns the address at which this rank sees the place in `peer`'s attached segment that corresponds to `own` in its
 * own segment, for benchmarks that copy from there; NULL if that rank is not reached through memory. The caller sees to
 * it that nobody writes there meanwhile. */
const void *slc_comm_place_at(const slc_comm *comm, int peer, const void *own);

/* Queues `count` operations in order and returns at once (it waits only while the queue, of at least 4096, is full).
 * *index, if not NULL, becomes the number of the first one, which is complete when slc_comm_completed has reached
 * *index + 1. Called from one thread at a time. Errors: ARGUMENT, ORDER (nothing is attached), UNSUPPORTED, and the
 * world's failure. */
sluice_status slc_comm_submit(slc_comm *comm, const slc_op *ops, size_t count, uint32_t *index);

/* Counts completed operations, in order. Wait with slc_comm_wait, which also ends on failure. */
slc_gate *slc_comm_completed(slc_comm *comm);

/* Waits until operation number index - 1 is complete or the world has failed. Returns SLUICE_OK if the operation is
 * complete, even when the world has failed since; else the failure. */
sluice_status slc_comm_wait(slc_comm *comm, uint32_t index);

/* These two let another stream, or the calling thread, wait until the device has done the operations before number
 * `count`, which are complete: on a device that runs ahead an operation is complete when its work is issued in the
 * stream below. On the host they do nothing. */
sluice_status slc_comm_stream_wait(const slc_comm *comm, sluice_stream *stream, uint32_t count);
sluice_status slc_comm_synchronize(slc_comm *comm, uint32_t count);
/* Lets the calling thread wait for all that is in `stream`, which waits for operations before number `count`. Returns
 * the world's failure if there is one by then: what the device waited for may have been broken off. */
sluice_status slc_comm_stream_synchronize(slc_comm *comm, sluice_stream *stream, uint32_t count);
/* The stream in which operations work, and in which hooks may issue work of their own, which then comes after that of
 * the operations before. It lives while a segment is attached. */
sluice_stream *slc_comm_stream(slc_comm *comm);

/* Wakes the communication thread if it sleeps; to be called after raising a gate that operations may wait for. Any
 * thread. */
void slc_comm_notify(slc_comm *comm);

/* Notes that this rank's program is in `call` (a constant), of `object` (NULL: of nothing), which is kept by pointer.
 * Heartbeats tell it to the other ranks, which name it when they wait in vain. Costs three stores. */
void slc_comm_call(slc_comm *comm, const char *call, const char *object);
/* Notes that the call does something that takes its time and needs no other rank: `work` (a constant, as "planning"),
 * until called with NULL. Until then the rank does not count as absent; to be called again now and then while that goes
 * on for minutes. */
void slc_comm_work(slc_comm *comm, const char *work);
/* Forgets the object of the last call, whose name is about to be freed. */
void slc_comm_end_names(slc_comm *comm);

/* Returns SLUICE_OK when all ranks are in the same call of the same object. Blocking, collective. MISMATCH, which fails
 * the world, says which other call a rank is in. A call that is collective whatever the plan moves begins with this
 * one, so that a rank that makes it alone is told so under every strategy. */
sluice_status slc_comm_meet(slc_comm *comm, const char *call, const char *object);

/* Fails the world with `status` and ends all waiting: every operation that has not started is dropped, and the other
 * ranks are told "rank 1 failed: LINE". Returns when that is on its way (or cannot be sent within a fifth of a second),
 * so that the process may end. Does nothing after an earlier failure. Not to be called from hooks. */
void slc_comm_fail(slc_comm *comm, sluice_status status, const char *line);

/* Bytes of data that this rank's messages have carried since creation, or would have carried had no memory been shared.
 * All bytes of an operation are counted once it is complete. */
uint64_t slc_comm_bytes_sent(const slc_comm *comm);

/* Times of this rank's communicating operations since creation. Ranks that are reached through messages are never seen
 * to come late: waiting for them counts as carrying. */
typedef struct {
    double carried_s;    /* an operation at which all ranks were was not complete */
    double late_s;       /* from when this rank was at an operation until all were: the sum over operations */
    uint64_t operations; /* that are complete */
} slc_comm_use;
slc_comm_use slc_comm_used(const slc_comm *comm);
