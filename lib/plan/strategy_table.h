/* The one table of what each strategy keeps and does; planner, packer, validator, solver and engine read it. V is the
 * unit's padded length in elements, N the world's size. */
#pragma once

#include "lib/plan/roles.h"

typedef enum {
    SLC_LIFE_RESIDENT, /* from commit on */
    SLC_LIFE_GRADIENT, /* the whole buffer from the first slot that adds to it, in the first micro-batch (with each: in
                          every one); each block until the reduction that moves it elsewhere or, if the sum stays in
                          place, until the block's update */
    SLC_LIFE_WINDOW,   /* each block from its gather until the last slot of the window; once a micro-batch */
    SLC_LIFE_PACKETS,  /* from COMPRESS to EXCHANGE */
    SLC_LIFE_RESULTS,  /* from EXCHANGE to UPDATE */
    SLC_LIFE_REDUCED   /* each block from its reduction (with each: its first one) until its last reader: the update, or
                          GATHER_GRADIENT if it gathers an owned part */
} slc_life;

typedef struct {
    slc_buffer_kind kind;
    slc_life life;
    bool shard; /* an owned part, V/N; else V */
    uint32_t index;
} slc_buffer_rule;

enum { SLC_BUFFER_RULES_MAX = 40 };

/* A strategy by itself; slc_operations_of and slc_buffer_rules work out what follows for a unit. */
typedef struct {
    bool updates_whole;         /* every rank has all of the master and of the states, and updates all values */
    bool gradient_is_transient; /* the gradient comes and goes; otherwise it is resident */
    bool gathers_windows;       /* values are sharded and gathered for each window */
    bool exchanges;             /* compressed momentum, for the whole unit at a time, instead of averaged gradients */
    bool offered;               /* a choice for free units: no other strategy moves as many bytes and keeps less */
    /* Bits 1 << slc_strategy of strategies that move the same bytes in the same ways and keep no more: dominated_by in
     * every case, dominated_if_frozen if the unit is frozen. */
    uint8_t dominated_by, dominated_if_frozen;
    const char *doc; /* says people what it shards */
} slc_strategy_rules;

extern const slc_strategy_rules slc_strategies[SLC_STRATEGIES];
/* All strategies, those first that keep least memory. */
extern const slc_strategy slc_strategies_by_memory[SLC_STRATEGIES];

static inline bool slc_updates_whole(slc_strategy strategy)
{
    return slc_strategies[strategy].updates_whole;
}
static inline bool slc_gradient_is_transient(slc_strategy strategy)
{
    return slc_strategies[strategy].gradient_is_transient;
}
static inline bool slc_gathers_windows(slc_strategy strategy)
{
    return slc_strategies[strategy].gathers_windows;
}
static inline bool slc_exchanges(slc_strategy strategy)
{
    return slc_strategies[strategy].exchanges;
}
/* Bits 1 << slc_strategy of what a free unit is offered, onebit only if `lossy`. */
uint8_t slc_offered_strategies(const slc_job *job, const slc_unit *unit, bool lossy);

/* The type of the elements of a unit's buffer of this kind. */
sluice_dtype slc_buffer_dtype(const slc_job *job, const slc_unit *unit, slc_buffer_kind kind);

/* Trainable bf16 values have an fp32 master. */
static inline bool slc_has_master(const slc_unit *unit)
{
    return unit->trainable && unit->dtype != SLUICE_FP32;
}

/* Writes the buffers of a unit under a strategy to `rows` and returns their number. GATHERED is listed once (index 0),
 * however many there are (slc_gathered_buffers). */
uint32_t slc_buffer_rules(const slc_job *job, const slc_unit *unit, slc_strategy strategy,
                          slc_buffer_rule rows[SLC_BUFFER_RULES_MAX]);

/* Bytes of the buffer that a row describes. */
uint64_t slc_buffer_bytes(const slc_job *job, const slc_unit *unit, const slc_buffer_rule *row);

/* Returns the byte at which a block begins in a unit's buffer of this kind; for block numbers past the last block, the
 * buffer's end. `shard` as in the row. */
uint64_t slc_block_byte(const slc_job *job, const slc_unit *unit, slc_buffer_kind kind, bool shard, uint64_t block);

/* Bytes of the staging buffer: the largest block of any unit in fp32, for reading a parameter. */
uint64_t slc_reading_bytes(const slc_job *job);

/* Bytes that a unit has in memory for good: its resident rows. */
uint64_t slc_resident_bytes(const slc_job *job, const slc_unit *unit, slc_strategy strategy);
/* The resident bytes of all units, each under its strategy. */
uint64_t slc_resident_bytes_of_all(const slc_job *job, const slc_strategy *strategies);

/* The operations of a unit under a strategy in one step; SLC_ITEM_KINDS: none of this sort. A ROWS unit has only a
 * reduction and window gathers. */
typedef struct {
    slc_item_kind reduce;  /* REDUCE_SCATTER or ALL_REDUCE, in the last micro-batch, with `each` in every one. onebit:
                              ALL_REDUCE if the job refreshes; the engine skips it in steps that do not */
    slc_item_kind inspect; /* onebit, if it waits for the agreement: runs before the agreement */
    slc_item_kind compress, exchange; /* onebit: after the gradient's last slot (and after `reduce`, and the agreement
                                         if slc_waits_for_agreement), before the update */
    slc_item_kind gather_gradient;    /* dp with each */
    slc_item_kind update;
    slc_item_kind gather_value; /* oss, sdp */
    bool windows;               /* fsdp: GATHER_WINDOW for each window of each micro-batch */
    bool moves_sum; /* the sum does not stay where the gradient is, but in a REDUCED buffer (ROWS: the partner's REDUCED
                       buffer or gradient) */
    bool keeps_sum; /* that REDUCED buffer is the unit's own */
    bool whole_sum; /* dp with each, if the sum's type is not the gradient's: REDUCED is whole, gathered in place and
                       read by the update */
} slc_unit_operations;
slc_unit_operations slc_operations_of(const slc_job *job, const slc_unit *unit, slc_strategy strategy);

/* Bytes that an operation on `elements` of a unit moves (full buffer; an exchange: unit->exchange.wire). Reductions are
 * in the gradient's type, GATHER_GRADIENT and UPDATE in the reduced gradient's, all others in the values' type. A ROWS
 * unit's reduction moves its most rows, whatever `elements` is. */
uint64_t slc_operation_bytes(const slc_job *job, const slc_unit *unit, slc_item_kind kind, uint64_t elements);
