/* A plan: strategies, one total order of compute slots and operations, where every buffer lies, and which earlier items
 * must have ended before an item may start.
 *
 * Two lanes run a program; a stage of a pipeline has one more for each end of a channel. The compute lane runs its
 * slots, and the updates that the plan puts there, in order; the communication lane starts its operations in order.
 * Item i waits only for items before it in the same step or for items of the previous step (the communication lane may
 * run on across the step's end). So whatever the timing, the earliest item that has not ended can always go on, and
 * there is no deadlock. A buffer may be claimed only after the claims that held its addresses before have been
 * released; the items that release them are in `after` (the ticket). */
#pragma once

#include "lib/base/integer.h"
#include "lib/plan/job.h"

#include <sluice/status.h>

typedef enum {
    SLC_BUFFER_VALUE,        /* whole values of a unit (all but fsdp) */
    SLC_BUFFER_VALUE_SHARD,  /* fsdp: the owned part of the values */
    SLC_BUFFER_MASTER,       /* fp32 master of bf16 values: whole (dp, onebit), else the owned part */
    SLC_BUFFER_GATHERED,     /* fsdp: whole values during one window (slc_gathered_number) */
    SLC_BUFFER_GRADIENT,     /* whole gradient */
    SLC_BUFFER_REDUCED,      /* reduced gradient, if it cannot stay where the gradient is: owned part, or whole */
    SLC_BUFFER_STATE,        /* optimizer state number `index`: whole (dp, onebit) or owned part */
    SLC_BUFFER_WORKER_ERROR, /* onebit: the error that this rank's own compression left */
    SLC_BUFFER_SERVER_ERROR, /* onebit: the error of compressing the average, for the part that this rank averages */
    SLC_BUFFER_LOCAL,        /* onebit: array number `index` that the optimizer keeps on each rank */
    SLC_BUFFER_PACKETS,      /* onebit: compressed momentum for each rank */
    SLC_BUFFER_RESULTS,      /* onebit: the averages, compressed, from each rank */
    SLC_BUFFER_ROW_LISTS,    /* ROWS: lists of the rows that the ranks touch (slc_row_lists_bytes) */
    SLC_BUFFER_ACTIVATION,   /* activation number `index` of the job */
    SLC_BUFFER_WORKSPACE,    /* workspace number `index` of the job */
    SLC_BUFFER_SCRATCH,      /* scratch memory of communication */
    SLC_BUFFER_AGREEMENT,    /* the words that the ranks add up once a step: norm bins, non-finite flags */
    SLC_BUFFER_STAGING,      /* one block in fp32, for reading parameters between steps */
    SLC_BUFFER_KINDS
} slc_buffer_kind;

enum { SLC_NONE = UINT32_MAX };

/* Count of the 64-bit words that the ranks add up once a step: 64, plus the optimizer's norm words, rounded up to a
 * multiple of 16 words for each rank. */
enum { SLC_AGREEMENT_HEAD = 64 };
static inline uint64_t slc_agreement_words(const slc_job *job)
{
    return slc_round_up(SLC_AGREEMENT_HEAD + (uint64_t)job->norm_words, 16 * (uint64_t)job->world);
}

typedef struct {
    slc_buffer_kind kind;
    uint32_t unit;  /* SLC_NONE: the buffer belongs to no unit */
    uint32_t index; /* number of the state, local array, activation, workspace or window */
    uint64_t bytes;
    uint64_t offset; /* in the arena */
} slc_buffer;

typedef enum {
    SLC_ITEM_SLOT,            /* compute */
    SLC_ITEM_REDUCE_SCATTER,  /* gradient -> owned part: in place, or into REDUCED (later micro-batches of `each` add to
                                 it). ROWS: adds to the partner's owned part, after the partner's REDUCE_SCATTER of the
                                 same micro-batch and before its next one */
    SLC_ITEM_ALL_REDUCE,      /* dp, and onebit if the job refreshes: gradient -> gradient */
    SLC_ITEM_GATHER_GRADIENT, /* dp with each: REDUCED -> gradient; if REDUCED is whole, in place */
    SLC_ITEM_AGREE,           /* norm bins and flags of the step */
    SLC_ITEM_UPDATE,          /* the optimizer on the owned part (dp, onebit: on everything) */
    SLC_ITEM_GATHER_VALUE,    /* oss, sdp: owned part of VALUE -> VALUE, in place */
    SLC_ITEM_GATHER_WINDOW,   /* fsdp: VALUE_SHARD -> GATHERED of window `index`. ROWS: gathers the rows that this
                                 micro-batch touches from the partner's owned parts, after all updates of the partner.
                                 Which rows is known only after the last slot of the previous micro-batch, so it comes
                                 after that slot; with `each` also after that micro-batch's REDUCE_SCATTER */
    SLC_ITEM_INSPECT,         /* onebit, if its update waits for the agreement: looks at the rank's own gradient */
    SLC_ITEM_COMPRESS,        /* onebit: gradient, states, WORKER_ERROR -> PACKETS */
    SLC_ITEM_EXCHANGE,        /* onebit: PACKETS -> RESULTS, averaged; an update reads RESULTS */
    SLC_ITEM_SEND,    /* a stage's message of a micro-batch, on the channel `index` of slc_job.channels. Each end of
                         a channel is a lane of its own, so a message that waits holds nothing else up */
    SLC_ITEM_RECEIVE, /* the same at the other end; it is over when the message is there */
    SLC_ITEM_KINDS
} slc_item_kind;

const char *slc_item_kind_name(slc_item_kind kind);
const char *slc_buffer_kind_name(slc_buffer_kind kind);

/* A claim: bytes [first_byte, end_byte) of a buffer are in memory from the start of item `from` to the end of item
 * `to`. If `to` is late and `from` is not, the claim ends in the next pass (slc_claim_wraps). A buffer may have several
 * claims of different bytes at the same time: a unit's gradient shrinks, and its gathered values grow, block by
 * block. */
typedef struct {
    uint32_t buffer;
    uint64_t first_byte, end_byte;
    uint32_t from, to; /* items, inclusive */
} slc_claim;

typedef struct {
    uint32_t item;
    bool previous; /* the item of the previous pass is meant */
} slc_after;

/* An operation moves a run of base blocks of its unit. The items of one kind together move each of its blocks exactly
 * once; different kinds may be cut differently. A `late` operation belongs to the step before the pass in which it is
 * issued: it reduces, updates or gathers what that step left, while this pass already computes. A pass is one run of a
 * program. The first pass, and the first after a drain, has no previous step and leaves late items out; a drain runs
 * the late items only, in order. */
typedef struct {
    slc_item_kind kind;
    bool late;       /* only if slc_may_be_late (lib/plan/roles.h) */
    bool on_compute; /* only for an UPDATE of a unit that is not onebit: it runs on the compute lane, between slots, on
                        the compute threads */
    uint32_t micro_batch;
    uint32_t slot;  /* SLC_ITEM_SLOT: number within its micro-batch */
    uint32_t unit;  /* operations */
    uint32_t index; /* GATHER_WINDOW: number of the window; SEND, RECEIVE: the channel; SLOT of a stage: its task */
    uint64_t first_block, block_count; /* operations */
    slc_after *after;                  /* items that must have ended before this one starts */
    uint32_t after_count;
} slc_item;

typedef struct {
    slc_item *items;
    uint32_t item_count;
    slc_claim *claims; /* sorted by `from` */
    uint32_t claim_count;
} slc_program;

/* The part of a program that a pass runs. WHOLE runs all items. FIRST runs all but late items, because there is no
 * previous step that they could belong to. DRAIN runs late items only. */
typedef enum { SLC_PASS_WHOLE, SLC_PASS_FIRST, SLC_PASS_DRAIN, SLC_PASS_KINDS } slc_pass_kind;

static inline bool slc_claim_wraps(const slc_program *program, const slc_claim *claim)
{
    return program->items[claim->to].late && !program->items[claim->from].late;
}

/* Returns true if the claim exists while `item` runs, in a pass that has a previous one. */
static inline bool slc_claim_alive(const slc_program *program, const slc_claim *claim, uint32_t item)
{
    if (slc_claim_wraps(program, claim)) return claim->from <= item || item <= claim->to;
    return claim->from <= item && item <= claim->to;
}

/* The compute lane runs the slots and the updates with on_compute, in order. */
static inline bool slc_on_compute_lane(const slc_item *item)
{
    return item->kind == SLC_ITEM_SLOT || item->on_compute;
}

/* Returns true if the item itself waits for the item `before` of the same step; what that one waits for does not
 * count. */
static inline bool slc_waits_for_item(const slc_item *item, uint32_t before)
{
    for (uint32_t a = 0; a < item->after_count; a++)
        if (!item->after[a].previous && item->after[a].item == before) return true;
    return false;
}

static inline bool slc_is_message(slc_item_kind kind)
{
    return kind == SLC_ITEM_SEND || kind == SLC_ITEM_RECEIVE;
}

static inline bool slc_is_reduction(slc_item_kind kind)
{
    return kind == SLC_ITEM_REDUCE_SCATTER || kind == SLC_ITEM_ALL_REDUCE;
}

/* Returns the number in its step of the plan's micro-batch `micro_batch`, if the step runs only `run` of the plan's
 * `most` micro-batches; SLC_NONE: the step leaves it out. The last one always runs, since reductions follow it, and
 * those just before it are left out first: what the plan puts next to the first and the last one stays there. */
static inline uint32_t slc_ordinal_of_run(uint32_t run, uint32_t most, uint32_t micro_batch)
{
    if (micro_batch + 1 == most) return run - 1;
    return micro_batch + 1 < run ? micro_batch : SLC_NONE;
}

/* Returns true if an item, slot or operation, is one of a micro-batch that is left out. Values are gathered for a
 * micro-batch, and gradients reduced after it, only if it runs. */
static inline bool slc_is_left_out(const slc_item *item, uint32_t run, uint32_t most)
{
    const bool of_micro_batch =
        item->kind == SLC_ITEM_SLOT || item->kind == SLC_ITEM_GATHER_WINDOW || slc_is_reduction(item->kind);
    return of_micro_batch && slc_ordinal_of_run(run, most, item->micro_batch) == SLC_NONE;
}

/* Returns true if two operations on one unit have a block in common. */
static inline bool slc_share_blocks(const slc_item *a, const slc_item *b)
{
    return a->first_block < b->first_block + b->block_count && b->first_block < a->first_block + a->block_count;
}

typedef struct {
    const char *schedule;     /* the scheduler's name: a constant, or `owned_schedule` */
    char *owned_schedule;     /* the same name if the plan was read from a file; else NULL */
    slc_strategy *strategies; /* of each unit */
    uint32_t unit_count;
    bool *recompute; /* of each layer: its forward runs again in its backward slot. NULL: of none */
    uint32_t layer_count;
    slc_buffer *buffers;
    uint32_t buffer_count;
    slc_claim *statics; /* whole buffers that are claimed at commit and kept; from and to are not used */
    uint32_t static_count;
    slc_program train, evaluate;
    uint64_t arena_bytes; /* end of the highest buffer, as packed */
    uint64_t lower_bound; /* no packing of these lifetimes needs fewer bytes */
} slc_plan;

void slc_plan_destroy(slc_plan *plan); /* NULL is allowed */

/* Returns the index of a buffer in plan->buffers, or SLC_NONE. `index` is that of slc_buffer. */
uint32_t slc_plan_buffer(const slc_plan *plan, slc_buffer_kind kind, uint32_t unit, uint32_t index);

/* Checks a plan against its job and shares no code with what made it: every operation once and complete, dependencies,
 * lifetimes, no overlap of address and time, tickets, no wait for a later item. A plan that passes holds for every
 * subset of layers that a step leaves out (lib/plan/left_out.h). Errors: FORMAT (what and where), MEMORY. */
sluice_status slc_plan_validate(const slc_job *job, const slc_plan *plan);

/* Returns 64 bits that differ when anything in the plan differs, so that ranks can compare plans. */
uint64_t slc_plan_fingerprint(const slc_plan *plan);
