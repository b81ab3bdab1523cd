/* A plan: strategies, one total order of compute slots and operations, where every buffer lies, and which earlier items
 * must be over before an item may start.
 *
 * Two lanes run a program: the compute lane runs its slots (and the updates that are put there) in order, the
 * communication lane starts its operations in order. Item i waits only for items before it in the same step or for
 * items of the step before (the lane may run on across the step's end). So whatever the timing, the earliest item that
 * has not finished can always go on: no deadlock. A buffer may be claimed only when what lay at its addresses is
 * released: those releases are among `after` (the ticket). */
#ifndef SLC_PLAN_H
#define SLC_PLAN_H

#include "lib/plan/job.h"

#include <sluice/status.h>

typedef enum {
    SLC_BUFFER_VALUE,        /* whole values of a unit (dp, oss, sdp) */
    SLC_BUFFER_VALUE_SHARD,  /* fsdp: the owned part */
    SLC_BUFFER_MASTER,       /* fp32 master of values in bf16: whole (dp) or owned part */
    SLC_BUFFER_GATHERED,     /* fsdp: whole values in one window */
    SLC_BUFFER_GRADIENT,     /* whole gradient */
    SLC_BUFFER_REDUCED,      /* reduced gradient, where it cannot stay in the gradient's place: owned part, or whole */
    SLC_BUFFER_STATE,        /* optimizer state `index`: whole (dp, onebit) or owned part */
    SLC_BUFFER_WORKER_ERROR, /* onebit: what this rank's own compression left behind */
    SLC_BUFFER_SERVER_ERROR, /* onebit: what compressing the average left behind, of what this rank averages */
    SLC_BUFFER_LOCAL,        /* onebit: array `index` that the optimizer keeps on each rank */
    SLC_BUFFER_PACKETS,      /* onebit: compressed momentum for each rank */
    SLC_BUFFER_RESULTS,      /* onebit: the averages, compressed, from each rank */
    SLC_BUFFER_ROW_LISTS,    /* ROWS: which rows the ranks touch (slc_row_lists_bytes) */
    SLC_BUFFER_ACTIVATION,   /* `index` of the job's activations */
    SLC_BUFFER_WORKSPACE,    /* `index` of the job's workspaces */
    SLC_BUFFER_SCRATCH,      /* communication */
    SLC_BUFFER_AGREEMENT,    /* what the ranks add up once a step: norm bins, non-finite flags */
    SLC_BUFFER_STAGING,      /* one block in fp32, for reading parameters between steps */
    SLC_BUFFER_KINDS
} slc_buffer_kind;

enum { SLC_NONE = UINT32_MAX };

/* 64-bit words that the ranks add up once a step: 64, the optimizer's, and up to whole parts of 16 for each rank. */
enum { SLC_AGREEMENT_HEAD = 64 };
static inline uint64_t slc_agreement_words(const slc_job *job)
{
    uint64_t grain = 16 * (uint64_t)job->world, words = SLC_AGREEMENT_HEAD + (uint64_t)job->norm_words;
    return (words + grain - 1) / grain * grain;
}

typedef struct {
    slc_buffer_kind kind;
    uint32_t unit;  /* SLC_NONE: belongs to no unit */
    uint32_t index; /* state, activation, workspace or window */
    uint64_t bytes;
    uint64_t offset; /* in the arena */
} slc_buffer;

typedef enum {
    SLC_ITEM_SLOT,            /* compute */
    SLC_ITEM_REDUCE_SCATTER,  /* gradient -> own part: in place, or into REDUCED (added to it in later micro-batches).
                                 ROWS: added to the partner's own part, behind its own REDUCE_SCATTER of the same
                                 micro-batch and before that of the next one */
    SLC_ITEM_ALL_REDUCE,      /* dp: gradient -> gradient */
    SLC_ITEM_GATHER_GRADIENT, /* dp with each: REDUCED -> gradient; REDUCED in place, where that is whole */
    SLC_ITEM_AGREE,           /* norm bins and flags of the step */
    SLC_ITEM_UPDATE,          /* the optimizer, own part (dp: whole) */
    SLC_ITEM_GATHER_VALUE,    /* oss, sdp: own part of VALUE -> VALUE, in place */
    SLC_ITEM_GATHER_WINDOW,   /* fsdp: VALUE_SHARD -> GATHERED of window `index`. ROWS: of the partner's own parts what
                                 this micro-batch touches; all updates of the partner are over. Which rows is known only
                                 behind the last slot of the micro-batch before, and it stands behind that slot; with
                                 `each` behind that micro-batch's REDUCE_SCATTER too */
    SLC_ITEM_INSPECT,         /* onebit where it waits for the agreement: looks at the rank's own gradient */
    SLC_ITEM_COMPRESS,        /* onebit: gradient, states, WORKER_ERROR -> PACKETS */
    SLC_ITEM_EXCHANGE,        /* onebit: PACKETS -> RESULTS, averaged; an update reads RESULTS */
    SLC_ITEM_KINDS
} slc_item_kind;

const char *slc_item_kind_name(slc_item_kind kind);
const char *slc_buffer_kind_name(slc_buffer_kind kind);

/* What lies in memory from an item's start to an item's end: bytes [first_byte, end_byte) of a buffer. When `to` is
 * late and `from` is not, the claim ends in the pass after (slc_claim_wraps). A buffer may have several claims at a
 * time, of different bytes: a unit's gradient shrinks and its gathered values grow block by block. */
typedef struct {
    uint32_t buffer;
    uint64_t first_byte, end_byte;
    uint32_t from, to; /* items, inclusive */
} slc_claim;

typedef struct {
    uint32_t item;
    bool previous; /* of the pass before */
} slc_after;

/* Operations move a run of base blocks of their unit. Several items of one kind together move all of its blocks, each
 * once; kinds may be cut differently. An operation that is `late` belongs to the step before the one in whose pass it
 * stands: it reduces, updates or gathers what that step left, while this one already computes. With nothing before
 * (the first pass, or the first after a drain) late items are left out; a drain runs the late items alone, in order. */
typedef struct {
    slc_item_kind kind;
    bool late;       /* not SLOT, GATHER_WINDOW, nor what a SPLIT unit does up to its UPDATE and its ROWS unit's
                        REDUCE_SCATTER: the gather of the ROWS unit's table, early in the next pass, needs them */
    bool on_compute; /* UPDATE alone, and not of onebit units: it runs on the compute lane, by the compute threads,
                        between slots */
    uint32_t micro_batch;
    uint32_t slot;                     /* SLC_ITEM_SLOT: in its micro-batch */
    uint32_t unit;                     /* operations */
    uint32_t index;                    /* GATHER_WINDOW: window */
    uint64_t first_block, block_count; /* operations */
    slc_after *after;                  /* over before this item starts */
    uint32_t after_count;
} slc_item;

typedef struct {
    slc_item *items;
    uint32_t item_count;
    slc_claim *claims; /* sorted by `from` */
    uint32_t claim_count;
} slc_program;

static inline bool slc_claim_wraps(const slc_program *program, const slc_claim *claim)
{
    return program->items[claim->to].late && !program->items[claim->from].late;
}

/* Is the claim there while `item` runs, in a pass that has one before it? */
static inline bool slc_claim_alive(const slc_program *program, const slc_claim *claim, uint32_t item)
{
    if (slc_claim_wraps(program, claim)) return claim->from <= item || item <= claim->to;
    return claim->from <= item && item <= claim->to;
}

/* The compute lane runs slots, and updates that are not the communication thread's, in order. */
static inline bool slc_on_compute_lane(const slc_item *item)
{
    return item->kind == SLC_ITEM_SLOT || item->on_compute;
}

static inline bool slc_is_reduction(slc_item_kind kind)
{
    return kind == SLC_ITEM_REDUCE_SCATTER || kind == SLC_ITEM_ALL_REDUCE;
}

/* onebit: always the whole unit, in the last micro-batch. */
static inline bool slc_is_compressed(slc_item_kind kind)
{
    return kind == SLC_ITEM_INSPECT || kind == SLC_ITEM_COMPRESS || kind == SLC_ITEM_EXCHANGE;
}

/* Do two operations on one unit have a block in common? */
static inline bool slc_share_blocks(const slc_item *a, const slc_item *b)
{
    return a->first_block < b->first_block + b->block_count && b->first_block < a->first_block + a->block_count;
}

typedef struct {
    const char *schedule;     /* the scheduler's name: a constant, or `owned_schedule` */
    char *owned_schedule;     /* of a plan that was read; else NULL */
    slc_strategy *strategies; /* of each unit */
    uint32_t unit_count;
    bool *recompute; /* of each layer: its forward runs again in its backward slot */
    uint32_t layer_count;
    slc_buffer *buffers;
    uint32_t buffer_count;
    slc_claim *statics; /* claimed at commit for good; from and to are not used */
    uint32_t static_count;
    slc_program train, evaluate;
    uint64_t arena_bytes; /* the packer's figure */
    uint64_t lower_bound; /* no packing of these lifetimes is smaller */
} slc_plan;

void slc_plan_destroy(slc_plan *plan); /* NULL is allowed */

/* The index of a buffer, or SLC_NONE. `index` as in slc_buffer. */
uint32_t slc_plan_buffer(const slc_plan *plan, slc_buffer_kind kind, uint32_t unit, uint32_t index);

/* Checks a plan against its job, sharing no code with what made it: every operation once and complete, dependencies,
 * lifetimes, no overlap of address and time, tickets, no wait for a later item. Errors: FORMAT (what and where). */
sluice_status slc_plan_validate(const slc_job *job, const slc_plan *plan);

/* 64 bits that differ when anything in the plan does: for ranks to compare. */
uint64_t slc_plan_fingerprint(const slc_plan *plan);

#endif
