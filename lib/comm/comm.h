/* Block collectives, asynchronous, on the rank's communication thread.
 *
 * Operations are submitted in the same order on every rank and start in that order. Each may wait for two gates before
 * it starts (its data, its memory); a later one never overtakes it. Completion is counted in order too: operation k is
 * complete when `completed` has reached k + 1. The next ones may start before this one is complete, so that the wire
 * does not idle, but only if they touch different bytes (or both only read them). Whoever depends on what an
 * operation's hooks do must wait for the count: it is raised after they have run. A failure of the world raises
 * `completed` far beyond every operation: ask slc_comm_wait or sluice_world_check.
 *
 * Geometry. A buffer of `elements` (a multiple of 16 * N) is cut in base blocks of `block_elements` (a multiple of
 * 16 * N; the last block may be shorter, still a multiple). Rank r owns the r-th N-th of every block.
 *   whole layout: block i at i * block_elements, rank r's part inside it at r * (block length / N)
 *   shard layout: the parts of one rank only, block i's at i * block_elements / N
 *
 * Sums: each element is added in fp32 in rank order, then scaled once, then rounded once to the type of the result: the
 * same bits on every path and block size.
 * Memory: scratch is given once (slc_comm_attach); nothing is allocated by an operation. Buffers must lie in the
 * attached arena and at the same offset on every rank: ranks of one host then use each other's memory. */
#ifndef SLC_COMM_H
#define SLC_COMM_H

#include "lib/base/gate.h"
#include "lib/base/row_list.h"
#include "lib/device/device.h"
#include "lib/kernels/compress/compress_group.h"

#include <sluice/status.h>
#include <sluice/world.h>

typedef struct slc_comm slc_comm;

typedef enum {
    SLC_REDUCE_SCATTER,      /* src whole -> dst own part (whole layout: in place of the own part; or shard layout) */
    SLC_ALL_GATHER,          /* src own part (whole or shard layout) -> dst whole */
    SLC_ALL_REDUCE,          /* src whole == dst whole: every rank gets the scaled sum of everything */
    SLC_BROADCAST,           /* src == dst whole, from `root` */
    SLC_COMPRESSED_EXCHANGE, /* packets of a group of tensors (compress_group.h), made with slc_exchange_op */
    SLC_GATHER_ROWS,         /* src own part (whole or shard layout) -> dst: of the whole layout those rows that this
                                rank's list names; made with slc_gather_rows_op */
    SLC_REDUCE_ROWS,         /* src: rows as this rank's list names them -> dst own part (whole or shard layout) +=;
                                made with slc_reduce_rows_op */
    SLC_BARRIER,             /* no data */
    SLC_CALL /* no communication: `call` runs on the communication thread as soon as it is its turn to start,
                be earlier operations in flight or not; nothing else goes on meanwhile, so it should be short */
} slc_op_kind;

typedef enum { SLC_WHOLE, SLC_SHARD } slc_layout;

/* Which rows of a table each rank touches; a table has rows of row_elements elements in the whole layout, row r at
 * r * row_elements, where the table's blocks are cut and shared out as the geometry above says: a row may have several
 * owners. `lists`, in the attached arena at a multiple of 64, the same place on every rank, holds an slc_row_list for
 * each rank, slc_row_list_bytes(most) behind each other. This rank's own, number `rank`, must be written when the
 * operation starts (its `start` hook may write it) and stay until it is complete; the operation fills the others as far
 * as it needs them. The struct is kept by pointer until then. A skipped operation does not look at lists. */
typedef struct {
    uint64_t row_elements, row_count; /* row_count * row_elements is at most the table's elements */
    uint64_t most;                    /* rows in a list, at most; the same on every rank */
    void *lists;
} slc_rows;

typedef struct slc_op slc_op;
struct slc_op {
    slc_op_kind kind;
    slc_dtype dtype; /* sums: SLC_FLOAT32, SLC_BFLOAT16, for all-reduce SLC_INT64 and SLC_FLOAT64 too; any for gather
                        and broadcast */
    bool widen;      /* reduce_scatter of bfloat16: dst is float32, so the sum is not rounded again */
    uint64_t elements, block_elements;
    uint64_t first_block, block_count; /* which base blocks this operation moves */
    const void *src;                   /* of the buffer's first block, whatever first_block is */
    void *dst;
    slc_layout src_layout, dst_layout;
    float scale;     /* reductions of float32 and bfloat16: applied once to the sum */
    bool accumulate; /* reduce_scatter: dst += scale * sum instead of dst = */
    int root;
    const slc_compress_group *group; /* SLC_COMPRESSED_EXCHANGE */
    const slc_residue *servers;
    const slc_rows *rows; /* SLC_GATHER_ROWS, SLC_REDUCE_ROWS */

    slc_gate *wait[2]; /* start only when wait[i] has reached wait_value[i]; NULL: no condition */
    uint32_t wait_value[2];
    const bool *skip; /* NULL, or looked at once, when the waits have passed and the operation starts; the same on every
                         rank. True: nothing moves or changes, no other rank is waited for, `call` is left out; `start`
                         and `end` run, and it counts as complete in its order. May be set by an earlier operation's
                         hook, if the operation waits for that one's completion. */

    /* Hooks, all on the communication thread; NULL: none. A failure fails the world. */
    sluice_status (*start)(void *context); /* when the waits have passed and the operation starts (the engine claims
                                              memory here) */
    sluice_status (*call)(void *context);  /* SLC_CALL: the work, right after `start`; else at completion, in order */
    sluice_status (*end)(void *context);   /* at completion, in order, before it is counted */
    void *context;
    const char *what; /* for messages: "layer h.3 reduce_scatter"; kept by pointer */
};

/* A compressed exchange of all tensors of a group: packet k of `packets` (ranks * stride bytes, from
 * slc_compress_worker) goes to rank k, which makes the averages of its chunks and compresses them again with the errors
 * of `servers`, one a tensor; every rank gets all results, equal bits on each, as `results` for slc_compress_apply. One
 * message to each rank and back: two latencies; of V bytes of fp32 (padding included) each rank sends (V/32) 2 (N-1)/N
 * and the scales. `results` has slc_comm_exchange_bytes. Both buffers lie in the attached arena, at the same place on
 * every rank, and do not overlap. The servers' residues are this rank's alone and may lie anywhere; no other operation
 * on them may be submitted before this one is complete, and until then group and servers are kept by pointer. */
slc_op slc_exchange_op(const slc_compress_group *group, const void *packets, void *results, const slc_residue *servers);

/* Bytes of `results`: ranks * stride; twice as much where some ranks need messages, which arrive behind. The same on
 * every rank. */
uint64_t slc_comm_exchange_bytes(const slc_comm *comm, const slc_compress_group *group);

/* Rows of a table of `elements` in base blocks of `block_elements`, of this rank's list: row number i of it to
 * dst + i * row_elements. Of V bytes of rows a rank receives V (N-1)/N, and sends about as much; a first message to
 * each rank carries the list. Nothing is allocated: what messages need beside src and dst lies in the scratch (as much
 * as a reduction of one base block has). Table, rows (`most` of them) and lists may not overlap. Errors at submission:
 * ARGUMENT (a buffer outside of the arena, shapes that do not fit, too little scratch); at the start: FORMAT fails the
 * world (a list that is too long, not ascending, or names a row that is not there: says which). */
slc_op slc_gather_rows_op(const slc_rows *rows, slc_dtype dtype, uint64_t elements, uint64_t block_elements,
                          const void *src, slc_layout src_layout, void *dst);

/* Adds rows of this rank's list to their owners' parts: to each element that any rank has, in its own part of dst, the
 * owner adds scale * (the fp32 sum over those ranks that have its row, in rank order), rounded once to the type of dst.
 * `dtype` of src; dst_dtype float32, or dtype. Other elements of dst are not touched. Costs and errors as above. */
slc_op slc_reduce_rows_op(const slc_rows *rows, slc_dtype dtype, slc_dtype dst_dtype, uint64_t elements,
                          uint64_t block_elements, const void *src, void *dst, slc_layout dst_layout, float scale);

/* The communication of a world. One comm a world; owned by the world. */
slc_comm *slc_world_comm(sluice_world *world);

/* Lets peers of this host map `segment` and keeps `scratch` (inside it) for messages. Collective, blocking; once at a
 * time (a second attach replaces the first after all operations are complete; NULL detaches, locally).
 * `segment` stays where it is until it is detached; when a transport could not be stopped from using it after a
 * failure, it is marked as kept. Ranks must give segments of equal size. scratch_bytes as slc_comm_scratch_bytes says.
 */
sluice_status slc_comm_attach(slc_comm *comm, slc_segment *segment, void *scratch, uint64_t scratch_bytes);

/* Scratch that operations on base blocks of at most `block_bytes` need: 0 when every peer is reached directly,
 * else depth * block * (N-1)/N, rounded up. The same on every rank. */
uint64_t slc_comm_scratch_bytes(const slc_comm *comm, uint64_t block_bytes);

/* Queues `count` operations in order; returns at once (waits only while the queue, of at least 4096, is full).
 * *index, if not NULL, is the number of the first one: it is complete when slc_comm_completed has reached *index + 1.
 * Called from one thread at a time. */
sluice_status slc_comm_submit(slc_comm *comm, const slc_op *ops, size_t count, uint32_t *index);

/* Counts completed operations, in order. Wait with slc_comm_wait, which also ends on failure. */
slc_gate *slc_comm_completed(slc_comm *comm);

/* Waits until operation number index - 1 is complete, or the world has failed. SLUICE_OK if it is complete, even where
 * the world has failed since; else the failure. */
sluice_status slc_comm_wait(slc_comm *comm, uint32_t index);

/* To be called after raising a gate that operations may wait for: wakes the communication thread if it sleeps. */
void slc_comm_notify(slc_comm *comm);

/* What this rank's program is doing, for heartbeats, by which the others hear of it when they wait in vain: it is in
 * `call` (a constant), of `object` (NULL: of nothing), which is kept by pointer. Costs three stores. */
void slc_comm_call(slc_comm *comm, const char *call, const char *object);
/* It does something in there that takes its time and needs no other rank: `work` (a constant, as "planning") until
 * called with NULL; so it is not absent. To be called now and then while that goes on for minutes. */
void slc_comm_work(slc_comm *comm, const char *work);
/* The names of objects are about to be freed. */
void slc_comm_end_names(slc_comm *comm);

/* Blocking, collective: returns SLUICE_OK when all ranks are in the same call of the same object; MISMATCH, which fails
 * the world, says which other call a rank is in. A call that is collective whatever the plan moves begins with it, so
 * that a rank that makes it alone is told so under every strategy. */
sluice_status slc_comm_meet(slc_comm *comm, const char *call, const char *object);

/* Ends waiting: every operation not yet started is dropped, the world has failed with `status`, and the other ranks are
 * told: "rank 1 failed: LINE". Returns when that is on its way (or cannot be sent within a fifth of a second), so that
 * the process may end. Does nothing after a failure. Not from hooks. */
void slc_comm_fail(slc_comm *comm, sluice_status status, const char *line);

/* Bytes of data that this rank's messages carried, since creation, and what they would have carried had no memory been
 * shared. Of an operation, all of them once it is complete. */
uint64_t slc_comm_bytes_sent(const slc_comm *comm);

#endif
