/* What each strategy keeps and does: the one table that planner, packer, validator, solver and engine read. V is the
 * unit's padded length, N the world's size. */
#ifndef SLC_PLAN_STRATEGY_TABLE_H
#define SLC_PLAN_STRATEGY_TABLE_H

#include "lib/plan/plan.h"

typedef enum {
    SLC_LIFE_RESIDENT, /* from commit on */
    SLC_LIFE_GRADIENT, /* all of it from the first slot that adds to it, in the first micro-batch that does (each: in
                          every one); each block until the reduction that moves it elsewhere, or, where the sum stays in
                          place, until the block's update */
    SLC_LIFE_WINDOW,   /* each block from its gather until the last slot of the window; once a micro-batch */
    SLC_LIFE_PACKETS,  /* from COMPRESS to EXCHANGE */
    SLC_LIFE_RESULTS,  /* from EXCHANGE to UPDATE */
    SLC_LIFE_REDUCED   /* each block from its (each: first) reduction until its last reader: the update, or, for an own
                          part, GATHER_GRADIENT where there is one */
} slc_life;

typedef struct {
    slc_buffer_kind kind;
    slc_life life;
    bool shard; /* V/N, else V */
    uint32_t index;
} slc_memory_row;

enum { SLC_MEMORY_ROWS_MAX = 40 };

/* dp, onebit: every rank has all of the master and of the optimizer's states, and updates all values. */
bool slc_updates_whole(slc_strategy strategy);

/* sdp, fsdp: the gradient comes and goes; else it is resident. */
bool slc_gradient_is_transient(slc_strategy strategy);

/* The type of the elements of a unit's buffer of this kind. */
sluice_dtype slc_buffer_dtype(const slc_job *job, const slc_unit *unit, slc_buffer_kind kind);

/* Values in bf16 that are trained have an fp32 master beside them. */
static inline bool slc_has_master(const slc_unit *unit)
{
    return unit->trainable && unit->dtype != SLUICE_FP32;
}

/* The buffers of a unit under a strategy. GATHERED stands once, whatever the number of windows (index 0). */
uint32_t slc_memory_rows(const slc_job *job, const slc_unit *unit, slc_strategy strategy,
                         slc_memory_row rows[SLC_MEMORY_ROWS_MAX]);

/* Bytes of one buffer of a row. */
uint64_t slc_row_bytes(const slc_job *job, const slc_unit *unit, const slc_memory_row *row);

/* Where a block begins in a unit's buffer of this kind, in bytes; behind the last: the buffer's end. */
uint64_t slc_block_byte(const slc_job *job, const slc_unit *unit, slc_buffer_kind kind, bool shard, uint64_t block);

/* Bytes of a block of a unit in fp32: what reading it takes. */
uint64_t slc_reading_bytes(const slc_job *job);

/* Bytes that are there for good: the resident rows. */
uint64_t slc_resident_bytes(const slc_job *job, const slc_unit *unit, slc_strategy strategy);

/* The operations of a unit under a strategy in one step; SLC_ITEM_KINDS where there is none. ROWS: a reduction and
 * windows alone. */
typedef struct {
    slc_item_kind reduce;  /* REDUCE_SCATTER or ALL_REDUCE; in the last micro-batch, with `each` in every one.
                              onebit: ALL_REDUCE where the job refreshes; the engine leaves out what is not for
                              this step */
    slc_item_kind inspect; /* onebit that waits for the agreement: before it */
    slc_item_kind compress, exchange; /* onebit: behind the gradient's last slot (and `reduce`, and the agreement where
                                         slc_waits_for_agreement), before the update */
    slc_item_kind gather_gradient;    /* dp with each */
    slc_item_kind update;
    slc_item_kind gather_value; /* oss, sdp */
    bool windows;               /* fsdp: GATHER_WINDOW for each window of each micro-batch */
    bool moves_sum;             /* the reduction leaves the gradient's place: there is a REDUCED buffer (ROWS: the
                                   partner's, or its gradient) */
    bool whole_sum; /* dp with each, where the sum has another type than the gradient: REDUCED is whole, gathered
                       in place and read by the update */
} slc_unit_operations;
slc_unit_operations slc_operations_of(const slc_job *job, const slc_unit *unit, slc_strategy strategy);

/* Bytes that an operation moves of `elements` of a unit (full buffer; an exchange: unit->exchange.wire): in the
 * gradient's type for reductions, the reduced gradient's for GATHER_GRADIENT and UPDATE, else the values'. */
uint64_t slc_operation_bytes(const slc_job *job, const slc_unit *unit, slc_item_kind kind, uint64_t elements);

#endif
