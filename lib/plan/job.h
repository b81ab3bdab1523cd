/* What planning needs to know of a job: its layers, units, activations and settings. Made by the engine from what the
 * binary registered, or by a test. Strings and arrays belong to whoever made the job and must outlive the plan's use.
 */
#ifndef SLC_PLAN_JOB_H
#define SLC_PLAN_JOB_H

#include <sluice/dtype.h>
#include <stdbool.h>
#include <stdint.h>

/* All but onebit give the same weights, to the bit. onebit is chosen in the compressed phase of a compressed optimizer
 * alone: each rank keeps everything, as dp, and instead of averaging gradients exchanges its momentum compressed. */
typedef enum { SLC_DP, SLC_OSS, SLC_SDP, SLC_FSDP, SLC_ONEBIT, SLC_STRATEGIES } slc_strategy;
enum { SLC_EXACT_STRATEGIES = SLC_ONEBIT };

const char *slc_strategy_name(slc_strategy strategy);         /* "dp", ... */
bool slc_strategy_parse(const char *name, slc_strategy *out); /* false: no such strategy */

/* A layer that uses a unit's values. */
typedef struct {
    uint32_t layer;
    bool backward_value; /* its backward reads the value, not only the gradient */
} slc_use;

/* What a compressed exchange of all of a unit's parameters keeps and moves, in bytes; all 0 of a frozen unit. One
 * exchange moves all of the unit: a scale belongs to a whole tensor, so there is nothing to cut. */
typedef struct {
    uint64_t worker, server;   /* errors that stay behind: of the whole unit; of what this rank averages */
    uint64_t packets, results; /* buffers in flight: to all ranks, from all ranks (with what messages need) */
    uint64_t wire;             /* of packets: what of them is sent, were all of them sent */
} slc_exchange_sizes;

/* A tied parameter that one layer looks rows up in may be split by its uses: the SPLIT unit holds it and serves every
 * use but the look-up. The ROWS unit, the next one, holds no parameter: of the partner's rows those that the look-up of
 * a micro-batch touches, in a compact table, and their gradients. Its reduction adds to the partner's reduced gradient,
 * behind the partner's own, and the partner is updated behind both; its table is gathered from the partner's owned
 * parts, once those are updated. */
typedef enum { SLC_UNIT_WHOLE, SLC_UNIT_SPLIT, SLC_UNIT_ROWS } slc_unit_role;

/* What a strategy is chosen for. */
typedef struct {
    const char *name;
    uint64_t elements; /* a multiple of 16 * world; ROWS: of the table, most_rows * row_elements rounded up to that */
    uint64_t block_elements; /* base block, a multiple of 16 * world; ROWS: all of it, one block */
    sluice_dtype dtype;      /* of values; bf16: an fp32 master stands beside them where they are trainable */
    bool trainable;
    slc_use *uses; /* ascending layers; at least one */
    uint32_t use_count;
    bool fused; /* the parameters of all the layers that use it, which follow each other: each uses its own part. False:
                   every layer that uses it uses all of it */
    slc_exchange_sizes exchange;
    slc_unit_role role;
    uint32_t partner; /* SPLIT: its ROWS unit, the next one; ROWS: its SPLIT unit */
    /* ROWS: row r of the partner are its elements [r * row_elements, (r + 1) * row_elements), r < row_count; a rank
     * touches at most most_rows (<= row_count) different ones in a micro-batch. */
    uint64_t row_elements, row_count, most_rows;
} slc_unit;

/* Slots of one micro-batch are numbered 0..2L-1: F0..F(L-1), B(L-1)..B0. */
typedef struct {
    const char *name;
    uint64_t bytes;
    uint32_t first_slot, last_slot; /* of one micro-batch, inclusive */
    uint32_t last_forward_slot;     /* in evaluation; < first_slot: not used there */
    bool recomputable; /* of its layer's own slots: where the plan recomputes that layer it is dropped after
                          the forward and made again in the backward slot */
} slc_activation_life;

typedef struct {
    const char *name;
    uint64_t bytes;
    uint32_t slot; /* of one micro-batch: where it is valid */
} slc_workspace_life;

typedef struct {
    uint32_t world;         /* N */
    uint32_t micro_batches; /* M */
    bool each;              /* every micro-batch is reduced and added to an fp32 shard at its owner */
    sluice_dtype wire;      /* of gradients of units in bf16: see slc_gradient_dtype */
    bool barrier;           /* no update before every gradient of the step is reduced (clipping, NaN skipping) */
    uint32_t states;        /* of the optimizer, fp32 per element */
    bool exact;             /* the optimizer is no compressed one: asking for onebit is an error */
    bool compressed;        /* the phase in which onebit may be chosen; never with `each` or one rank */
    bool refreshes;         /* in some steps of it gradients of onebit units are averaged instead (0/1 Adam) */
    bool norms_barrier;     /* `barrier` is there for the optimizer's norms alone: onebit units need not wait */
    uint32_t local_arrays;  /* of a onebit unit beside the states, fp32 per element (0/1 Adam) */
    uint32_t norm_words;    /* of the optimizer's norms over parameters, in the agreement; they need the barrier */
    uint32_t layer_count;
    const char **layers;       /* names */
    const bool *can_recompute; /* of each layer: its binary can run the forward again; NULL: none can */
    slc_unit *units;
    uint32_t unit_count;
    slc_activation_life *activations;
    uint32_t activation_count;
    slc_workspace_life *workspaces;
    uint32_t workspace_count;
    uint64_t scratch_bytes;  /* of communication, for messages */
    uint64_t reserved_bytes; /* kept by the binary, outside of the arena */
} slc_job;

/* How many of the strategies, in their order, units of the job may have; of one unit, see slc_unit_may_be. */
static inline int slc_job_strategies(const slc_job *job)
{
    return job->compressed ? SLC_STRATEGIES : SLC_EXACT_STRATEGIES;
}

/* May a unit under this strategy be updated only when the step's agreement is over? */
static inline bool slc_waits_for_agreement(const slc_job *job, slc_strategy strategy)
{
    return job->barrier && !(strategy == SLC_ONEBIT && job->norms_barrier);
}

static inline uint32_t slc_job_slots(const slc_job *job)
{
    return 2 * job->layer_count;
}
static inline uint32_t slc_forward_slot(uint32_t layer)
{
    return layer;
}
static inline uint32_t slc_backward_slot(const slc_job *job, uint32_t layer)
{
    return 2 * job->layer_count - 1 - layer;
}
static inline bool slc_slot_is_forward(const slc_job *job, uint32_t slot)
{
    return slot < job->layer_count;
}
static inline uint32_t slc_slot_layer(const slc_job *job, uint32_t slot)
{
    return slot < job->layer_count ? slot : 2 * job->layer_count - 1 - slot;
}

/* Do micro-batches add up where they are made, to be reduced once? */
static inline bool slc_adds_locally(const slc_job *job)
{
    return job->micro_batches > 1 && !job->each;
}

/* Of a unit's gradients, in memory and on the wire. What adds up over micro-batches before it is reduced is fp32. */
static inline sluice_dtype slc_gradient_dtype(const slc_job *job, const slc_unit *unit)
{
    return unit->dtype == SLUICE_BF16 && job->wire == SLUICE_BF16 && !slc_adds_locally(job) ? SLUICE_BF16 : SLUICE_FP32;
}

/* Of its reduced gradients at their owner: fp32 where micro-batches are added there. */
static inline sluice_dtype slc_reduced_dtype(const slc_job *job, const slc_unit *unit)
{
    return job->micro_batches > 1 ? SLUICE_FP32 : slc_gradient_dtype(job, unit);
}

/* May this unit have this strategy? ROWS: fsdp alone, for its table comes and goes. SPLIT: not dp (its owners add what
 * other ranks' look-ups touched) and not onebit. */
bool slc_unit_may_be(const slc_job *job, const slc_unit *unit, slc_strategy strategy);

/* What becomes of a strategy that is asked for: itself where it may be; ROWS: fsdp; dp and onebit of a SPLIT unit: oss,
 * which moves as many bytes and keeps less; other onebit: dp. */
slc_strategy slc_unit_strategy(const slc_job *job, const slc_unit *unit, slc_strategy asked);

/* SPLIT units are updated when the gradient of the look-up, the step's last slot that adds to it, is reduced too. So
 * for planning they are as all units behind a barrier: reduced within the step, updated and gathered at its end. */
static inline bool slc_updated_last(const slc_job *job, const slc_unit *unit)
{
    return job->barrier || unit->role == SLC_UNIT_SPLIT;
}

/* Is any parameter split by its uses: are there SPLIT and ROWS units? */
bool slc_job_splits(const slc_job *job);

/* Of a ROWS unit. Rows whose gradients are reduced at a time, at most: of one micro-batch, or of all of them where they
 * add up locally. Rows that its gradient buffer holds: those, and where they add up, those of the micro-batch that
 * runs in front of them. */
uint64_t slc_reduced_rows(const slc_job *job, const slc_unit *unit);
uint64_t slc_gradient_rows(const slc_job *job, const slc_unit *unit);

/* Bytes of its lists: which rows this rank and the others touch (slc_row_list_bytes for each rank, of the gather and of
 * the reduction), and what making a list needs. */
uint64_t slc_row_lists_bytes(const slc_job *job, const slc_unit *unit);

/* Blocks of a unit, and the length of one: all but the last are block_elements long. */
static inline uint64_t slc_unit_blocks(const slc_unit *unit)
{
    return (unit->elements + unit->block_elements - 1) / unit->block_elements;
}

/* A run of adjacent slots in which a unit's values are needed; fsdp gathers once for each. */
typedef struct {
    uint32_t first_slot, last_slot;
} slc_window;

/* Window number `index` of a unit in one micro-batch, in order; false when there are not that many. In evaluation
 * (with_backward false) only the forward ones count. */
bool slc_unit_window(const slc_job *job, const slc_unit *unit, bool with_backward, uint32_t index, slc_window *out);

/* The slots of one micro-batch in which a unit's gradient grows: first and last. */
void slc_unit_gradient_slots(const slc_job *job, const slc_unit *unit, uint32_t *first, uint32_t *last);

/* Names of all units for a message, cut with "..." when they do not fit. */
void slc_unit_names(const slc_job *job, char *out, size_t size);

#endif
