/* A job as planning sees it: layers, units, activations and settings. The engine makes a job from what the binary
 * registered, a profile makes one from a file, and tests make their own. Strings and arrays belong to the maker of the
 * job and must outlive the plan's use. */
#pragma once

#include <sluice/dtype.h>
#include <stdbool.h>
#include <stdint.h>

/* All strategies but onebit give the same weights, to the bit. onebit can be chosen only in the compressed phase of a
 * compressed optimizer: each rank keeps everything, as under dp, and the ranks exchange their compressed momentum
 * instead of averaging gradients. */
typedef enum { SLC_DP, SLC_OSS, SLC_SDP, SLC_FSDP, SLC_ONEBIT, SLC_STRATEGIES } slc_strategy;
enum { SLC_EXACT_STRATEGIES = SLC_ONEBIT };

const char *slc_strategy_name(slc_strategy strategy);         /* "dp", ... */
bool slc_strategy_parse(const char *name, slc_strategy *out); /* false: there is no such strategy */

/* A layer that uses a unit's values. */
typedef struct {
    uint32_t layer;
    bool backward_value; /* the layer's backward reads the value; if false, it only adds to the gradient */
} slc_use;

/* Bytes that a compressed exchange of a unit's parameters keeps and moves; all are 0 for a frozen unit. One exchange
 * moves the whole unit: a scale belongs to a whole tensor, so a unit cannot be cut. */
typedef struct {
    uint64_t worker, server;   /* errors kept between steps: of the whole unit; of the part that this rank averages */
    uint64_t packets, results; /* buffers in flight: to all ranks, from all ranks (with what messages need) */
    uint64_t wire; /* bytes of all the packets without their alignment, as if a rank sent every one of them */
} slc_exchange_sizes;

/* A tied parameter in which one layer looks rows up may be split by its uses. The SPLIT unit holds the parameter and
 * serves every use but the look-up. The ROWS unit, its partner and the next unit, holds no parameter, only a compact
 * table of the rows that the look-up of one micro-batch touches, and their gradients. Its reduction adds to the SPLIT
 * unit's reduced gradient, after the SPLIT unit's own reduction; the SPLIT unit is updated after both. Then the table
 * is gathered from the SPLIT unit's owned parts. lib/plan/roles.h says what each role allows and waits for. */
typedef enum { SLC_UNIT_WHOLE, SLC_UNIT_SPLIT, SLC_UNIT_ROWS } slc_unit_role;

/* The smallest thing that a strategy is chosen for. */
typedef struct {
    const char *name;
    uint64_t elements; /* a multiple of 16 * world; ROWS: elements of the table, most_rows * row_elements rounded up to
                          such a multiple */
    /* Elements of a base block, a multiple of 16 * world; ROWS: the whole table is one block. */
    uint64_t block_elements;
    sluice_dtype dtype; /* type of the values; if bf16 and trainable, there is an fp32 master too */
    bool trainable;
    slc_use *uses; /* in ascending order of layers; at least one */
    uint32_t use_count;
    bool fused; /* the unit joins parameters of the layers that use it, which follow each other, and each layer uses its
                   own part. False: every layer that uses the unit uses all of it */
    slc_exchange_sizes exchange;
    slc_unit_role role;
    uint32_t partner; /* SPLIT: index of its ROWS unit, which is the next one; ROWS: index of its SPLIT unit */
    /* ROWS: row r of the partner is its elements [r * row_elements, (r + 1) * row_elements), with r < row_count. A rank
     * touches at most most_rows (<= row_count) different rows in a micro-batch. */
    uint64_t row_elements, row_count, most_rows;
    bool adds_first; /* of a stage of a pipeline that puts weight gradients off: the first use only adds to the
                        gradient, neither its forward nor its backward reads the values */
    bool held;       /* of a stage of a pipeline: under fsdp the values are gathered once a step and kept over all its
                        micro-batches. False: in each micro-batch and direction anew */
} slc_unit;

/* A layer that reads an activation in its forward, its backward, or both. */
typedef struct {
    uint32_t layer;
    bool forward, backward;
} slc_reader;

/* Slots of one micro-batch are numbered 0..2L-1: F0..F(L-1), B(L-1)..B0. */
typedef struct {
    const char *name;
    uint64_t bytes;
    uint32_t first_slot, last_slot; /* within a micro-batch, inclusive */
    uint32_t last_forward_slot;     /* last slot in evaluation; < first_slot: not used in evaluation */
    bool recomputable; /* used only in its layer's own two slots; if the plan recomputes that layer, the activation is
                          dropped after the forward slot and made again in the backward slot */
} slc_activation_life;

/* The layers that read an activation besides the one in whose slot it begins, in ascending order, each within its life:
 * what crosses a cut between stages follows from them. `at` NULL: not known. */
typedef struct {
    const slc_reader *at;
    uint32_t count;
} slc_activation_readers;

/* One end of a channel, as a stage of a pipeline has it. A channel is one direction between two stages, for one
 * boundary; it carries a message for each micro-batch of a step, in order. */
typedef struct {
    uint32_t number; /* of the channel: the other end has the same */
    uint32_t stage;  /* where the other end is */
    bool receives;   /* else it sends */
    uint32_t slot;   /* the slot that reads what is received, or has made what is sent; SLC_NONE: none, see `unit` */
    uint32_t unit;   /* if there is no slot: the rows of a table, which its layers' unit has. Sent: its values;
                        received:   gradients of rows, which come before the unit's reduction. Else SLC_NONE */
    uint64_t bytes;  /* of a message */
} slc_stage_channel;

enum { SLC_STAGE_CHANNELS_MAX = 34 };

/* A stage of a pipeline holds several micro-batches at once, so it has several copies of each of its activations: this
 * copy is for the micro-batches m for which m % turns is turn. */
typedef struct {
    uint32_t turns, turn;
    /* Ends of channels, as their index in slc_job.channels plus 1; 0: none. The message of `receive` brings the
     * activation, which is in memory from then on. The message of `send` takes it away: it is in memory until that is
     * sent. */
    uint32_t receive, send;
} slc_activation_turn;

static inline bool slc_turn_has(const slc_activation_turn *turn, uint32_t micro_batch)
{
    return micro_batch % turn->turns == turn->turn;
}

/* A slot of a stage of a pipeline. Slots belong to tasks, a forward or a backward of the stage's layers each, which are
 * numbered in the order in which the stage runs them. */
typedef struct {
    uint32_t micro_batch, slot, task;
} slc_stage_slot;

typedef struct {
    const char *name;
    uint64_t bytes;
    uint32_t slot; /* the slot of a micro-batch in which it is valid */
} slc_workspace_life;

typedef struct {
    uint32_t world;         /* number of ranks, N */
    uint32_t micro_batches; /* micro-batches a step, M */
    bool each;              /* every micro-batch is reduced and added to an fp32 shard at its owner */
    sluice_dtype wire;      /* type in which gradients of bf16 units are kept and sent, see slc_gradient_dtype */
    bool barrier;           /* no update before every gradient of the step is reduced (clipping, NaN skipping) */
    uint32_t states;        /* number of the optimizer's states, each with one fp32 per element */
    bool exact;             /* the optimizer is not a compressed one: asking for onebit is an error */
    bool compressed;        /* this is the phase in which onebit may be chosen; never with `each` or with one rank */
    bool refreshes;     /* in some steps of this phase the gradients of onebit units are averaged instead (0/1 Adam) */
    bool norms_barrier; /* `barrier` is only there for the optimizer's norms: onebit units need not wait */
    uint32_t local_arrays; /* number of arrays that a onebit unit has besides the states, each with one fp32 per element
                              (0/1 Adam) */
    /* 64-bit words in the agreement for the optimizer's norms of parameters; they need the barrier. */
    uint32_t norm_words;
    uint32_t layer_count;
    const char **layers;       /* names */
    const bool *can_recompute; /* of each layer: its binary can run the forward again. NULL: no layer can */
    slc_unit *units;
    uint32_t unit_count;
    slc_activation_life *activations;
    uint32_t activation_count;
    const slc_activation_readers *readers; /* [activations]; NULL: of none are they known */
    slc_workspace_life *workspaces;
    uint32_t workspace_count;
    uint64_t scratch_bytes;  /* communication's scratch memory for messages */
    uint64_t reserved_bytes; /* memory that the binary keeps itself, outside of the arena */
    /* [M * slots] the order of a step's slots, if it is a pipeline's: for each micro-batch ascending, and for each
     * slot in the order of micro-batches. NULL: one micro-batch after another. */
    const slc_stage_slot *stage_slots;
    const slc_stage_channel *channels; /* [channel_count] NULL: the job is no stage */
    uint32_t channel_count;            /* at most SLC_STAGE_CHANNELS_MAX */
    /* The job is a stage in which other slots may run between the last forward of a micro-batch and its first backward,
     * so no window of gathered values holds both. */
    bool turns_back_later;
    const slc_activation_turn *turns; /* [activations]; NULL: an activation has all micro-batches, one after another */
} slc_job;

/* Returns how many strategies, from the first enumerator on, the units of the job may have; for one unit see
 * slc_unit_may_be (lib/plan/roles.h). */
static inline int slc_job_strategies(const slc_job *job)
{
    return job->compressed ? SLC_STRATEGIES : SLC_EXACT_STRATEGIES;
}

/* Returns true if the compressed exchange of a onebit unit waits for the step's agreement. */
static inline bool slc_exchange_waits(const slc_job *job)
{
    return job->barrier && !job->norms_barrier;
}

/* Returns true if a unit under this strategy may be updated only after the step's agreement. */
static inline bool slc_waits_for_agreement(const slc_job *job, slc_strategy strategy)
{
    return strategy == SLC_ONEBIT ? slc_exchange_waits(job) : job->barrier;
}

/* The readers of an activation of the job; NULL: they are not known. */
static inline const slc_activation_readers *slc_readers_of(const slc_job *job, const slc_activation_life *life)
{
    const slc_activation_readers *readers = job->readers ? &job->readers[life - job->activations] : NULL;
    return readers && readers->at ? readers : NULL;
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

/* Returns true if each rank adds its micro-batches up locally, so that gradients are reduced once a step. */
static inline bool slc_adds_locally(const slc_job *job)
{
    return job->micro_batches > 1 && !job->each;
}

/* Type of a unit's gradients in memory and on the wire. Gradients that add up over micro-batches before the reduction
 * are fp32. */
static inline sluice_dtype slc_gradient_dtype(const slc_job *job, const slc_unit *unit)
{
    return unit->dtype == SLUICE_BF16 && job->wire == SLUICE_BF16 && !slc_adds_locally(job) ? SLUICE_BF16 : SLUICE_FP32;
}

/* Type of a unit's reduced gradients at their owner: fp32 if micro-batches are added up there. */
static inline sluice_dtype slc_reduced_dtype(const slc_job *job, const slc_unit *unit)
{
    return job->micro_batches > 1 ? SLUICE_FP32 : slc_gradient_dtype(job, unit);
}

/* Two counts of a ROWS unit. slc_reduced_rows: the most rows whose gradients one reduction takes, those of one
 * micro-batch, or of all micro-batches if they add up locally. slc_gradient_rows: rows that its gradient buffer holds,
 * the same and, if they add up locally, those of the micro-batch that runs as well; its table comes first. */
uint64_t slc_reduced_rows(const slc_job *job, const slc_unit *unit);
uint64_t slc_gradient_rows(const slc_job *job, const slc_unit *unit);

/* Bytes of a ROWS unit's lists: which rows this rank and the others touch (one slc_row_list_bytes a rank for the gather
 * and one for the reduction), and the marks that making a list needs. */
uint64_t slc_row_lists_bytes(const slc_job *job, const slc_unit *unit);

/* The scratch memory of a stage that holds a table, for the ROWS unit that another stage looks up: rows that it sends
 * (at byte 0), gradients that have come, their sums over the micro-batches of a step, and lists of the rows that have
 * sums, one of each replica. */
typedef struct {
    uint64_t gradients, sums, lists; /* where they begin, at multiples of 64 */
    uint64_t bytes;                  /* of all of it */
} slc_table_places;
slc_table_places slc_table_places_of(const slc_job *job, const slc_unit *unit);

/* Number of blocks of a unit; all but the last have block_elements. */
static inline uint64_t slc_unit_blocks(const slc_unit *unit)
{
    return (unit->elements + unit->block_elements - 1) / unit->block_elements;
}

/* A run of adjacent slots in which a unit's values are needed; fsdp gathers once for each window. Values that are held
 * have one window, from the first slot that needs them in a micro-batch to the last one. */
typedef struct {
    uint32_t first_slot, last_slot;
} slc_window;

/* The micro-batch whose gathers bring a unit's values for this one, and the one in which they are read last. */
static inline uint32_t slc_gathered_in(const slc_unit *unit, uint32_t micro_batch)
{
    return unit->held ? 0 : micro_batch;
}
static inline uint32_t slc_gathered_until(const slc_job *job, const slc_unit *unit, bool evaluate, uint32_t micro_batch)
{
    return unit->held && !evaluate ? job->micro_batches - 1 : micro_batch;
}

/* Finds window number `index` of a unit within one micro-batch, in order; false if there are not that many. In
 * evaluation (with_backward false) only windows of forward slots count. */
bool slc_unit_window(const slc_job *job, const slc_unit *unit, bool with_backward, uint32_t index, slc_window *out);
uint32_t slc_unit_window_count(const slc_job *job, const slc_unit *unit, bool with_backward);

/* Gathered values have a place for each window in the first micro-batch, in the last one, and in those between, because
 * what is in memory next to them differs there: a buffer that must keep one place in all of them fits worse. Window
 * `window` of `micro_batch` is in the unit's GATHERED buffer of this number; an evaluation's is that of micro-batch 0.
 * slc_gathered_buffers: how many numbers a unit has. */
uint32_t slc_gathered_number(const slc_job *job, const slc_unit *unit, uint32_t micro_batch, uint32_t window);
uint32_t slc_gathered_buffers(const slc_job *job, const slc_unit *unit);

/* The first and the last slot of a micro-batch that add to a unit's gradient. */
void slc_unit_gradient_slots(const slc_job *job, const slc_unit *unit, uint32_t *first, uint32_t *last);

/* Writes the names of all units into `out` for a message and cuts them with "..." if they do not fit. */
void slc_unit_names(const slc_job *job, char *out, size_t size);
