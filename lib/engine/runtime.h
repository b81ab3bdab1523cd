/* What the files of the engine share. Private to lib/engine. */
#ifndef SLC_ENGINE_RUNTIME_H
#define SLC_ENGINE_RUNTIME_H

#include "lib/base/gate.h"
#include "lib/comm/comm.h"
#include "lib/device/device.h"
#include "lib/engine/engine.h"
#include "lib/engine/step/recording.h"
#include "lib/kernels/norm/norm.h"
#include "lib/memory/arena.h"
#include "lib/optim/compressed.h"
#include "lib/plan/plan.h"

#include <sluice/runtime.h>

enum { SLC_GRAIN = 16 }; /* elements: parameters and shards start at multiples of it */

struct sluice_param {
    sluice_runtime *rt;
    uint32_t number; /* of registration */
    uint32_t layer;  /* where it was added */
    char *name;      /* LAYER.NAME */
    uint64_t count;
    sluice_dtype dtype;
    bool frozen, no_decay, tied, no_backward_value;
    bool apart; /* replicas of it are apart by roundings: whatever reads it takes each element from its owner */
    uint32_t unit;
    uint64_t first;                   /* element of its unit */
    bool fresh;                       /* nothing has been added to its gradient yet: the content is undefined */
    uint32_t norm;                    /* of its norms, the first; where the optimizer wants any and it is trainable */
    uint64_t row_elements, most_rows; /* its layer reads some rows only; 0: all */
    uint32_t rows_set;                /* micro-batches of this step (evaluation: pass) whose rows are known */
    uint32_t rows_unit;               /* what its layer reads and adds to, where it is split; else SLC_NONE */
    slc_row_mark *marks;              /* of all rows, where it is not split */
    bool told;                        /* that it had no address, to the log; so in the others */
};

struct sluice_layer {
    sluice_runtime *rt;
    uint32_t index;
    char *name;
    slc_strategy forced; /* SLC_STRATEGIES: as the runtime's */
    sluice_dtype precision;
    bool can_recompute;
    uint32_t *units; /* those it uses, own and tied; after commit */
    uint32_t unit_count;
    sluice_param **uses; /* tied parameters of earlier layers */
    uint32_t use_count;
};

struct sluice_activation {
    sluice_runtime *rt;
    uint32_t index, layer;
    char *name, *last_layer, *last_forward_layer;
    uint64_t bytes;
    sluice_direction first, last;
    bool recomputable;
    void *data;
    bool told;
};

struct sluice_workspace {
    sluice_runtime *rt;
    uint32_t layer;
    char *name;
    uint64_t bytes;
    sluice_direction direction;
    uint32_t first, last; /* operations of the slot */
    uint64_t offset;      /* in the region of its slot */
    bool told;
};

/* The region that the workspaces of a slot share. */
typedef struct {
    uint64_t bytes;      /* packed; 0: there are none */
    uint64_t live_bytes; /* most that lives at one operation */
    uint32_t workspace;  /* of the job; SLC_NONE */
    unsigned char *data;
} slc_region;

/* A unit at run time: addresses of its buffers, NULL where it has none. */
typedef struct {
    slc_strategy strategy;
    sluice_param **params; /* ascending `first` */
    uint32_t param_count;
    sluice_dtype dtype, gradient_dtype, reduced_dtype; /* of value, shard, gathered; of gradient; of reduced or the sum
                                                          in the gradient's place */
    bool whole_sum;                                    /* `reduced` holds whole blocks, not shards */
    void *value, *shard, *gradient, *reduced;
    float *master; /* whole (dp) or shard */
    float *state[SLUICE_OPTIMIZER_STATES_MAX];
    void **gathered; /* of each window */
    uint32_t window_count;
    sluice_param *looked_up;     /* ROWS: of this parameter; it has no params */
    struct slc_look_up *look_up; /* look_up.h; ROWS */
    struct slc_onebit *onebit;   /* onebit.h; where the unit is trainable and the optimizer a compressed one */
    const void *now;             /* whole values in the slot that runs; NULL: not valid */
    void *gradient_now;
} slc_unit_state;

/* Element `element` of an array. */
static inline void *slc_element(const void *array, sluice_dtype dtype, uint64_t element)
{
    return (unsigned char *)(uintptr_t)array + element * sluice_dtype_bytes(dtype);
}

static inline slc_dtype slc_comm_dtype(sluice_dtype dtype)
{
    return dtype == SLUICE_BF16 ? SLC_BFLOAT16 : SLC_FLOAT32;
}

/* The settings and results of one step; two, because a step's last operations run into the next, late ones as part of
 * its pass. */
typedef struct {
    uint64_t step;
    double learning_rate;
    float scale;   /* of the reduced gradient */
    double factor; /* of clipping */
    bool skip;     /* NAN_SKIP: nothing is updated */
    int64_t bins[SLC_NORM_BINS];
    int64_t non_finite; /* reduced ranges with NaN or infinity, of all ranks after agreement */
    uint32_t bad_param; /* the first parameter with such a range of this rank, or SLC_NONE */
    double exposed_s;
    double *norms; /* that the optimizer wants, of all parameters, after agreement; kept from step to step */

    /* Of units under onebit. */
    slc_step_mode mode;
    bool compressed;                /* the step's phase */
    bool average_off, exchange_off; /* in this step they are neither averaged nor exchanged */
    double own_scale, own_factor;   /* of this rank's own gradient: as if it was averaged over one rank; of clipping */
    int64_t own_bins[SLC_NORM_BINS];
} slc_step_state;

typedef struct slc_pass slc_pass;
typedef struct slc_check slc_check; /* check.h */

/* What the communication thread gets with an operation. */
typedef struct {
    sluice_runtime *rt;
    slc_pass *pass;
    uint32_t item;
    slc_step_state *step;
    uint32_t number; /* of its pass */
} slc_operation;

typedef struct {
    uint32_t *operations; /* items that are operations, in order */
    uint32_t count;
    uint32_t late_end;  /* of them, up to the last late one */
    uint32_t *computed; /* items of the compute lane, in order */
    uint32_t computed_count;
    uint32_t *ordinal; /* of each item in its lane; SLC_NONE: it does not run */
} slc_lane_order;

/* A program made ready to run: which claims begin and end at each item, operations in lane order. */
struct slc_pass {
    const slc_program *program;
    bool evaluate;
    uint32_t slot_count;
    uint32_t *slots; /* items that are slots, in order */
    slc_lane_order order[SLC_PASS_KINDS];
    uint32_t *begins, *begin_first; /* claims that begin at item i: begins[begin_first[i] .. begin_first[i+1]) */
    uint32_t *ends, *end_first;
    slc_operation *contexts[2]; /* of each operation, for passes of either parity: steps[parity], late: the other */
    char **what;                /* of each operation, for messages */

    /* Of the pass that runs and of the one before. */
    slc_pass_kind kind[2];
    uint32_t computed_base[2], operation_base[2]; /* counts of either lane at its beginning */
    bool has_previous;
    uint32_t parity;
    uint32_t number;    /* of the running pass, counted up */
    uint32_t submitted; /* operations of the running pass */
    uint32_t computed;  /* items of the compute lane that it has behind it */
    uint32_t quiet;     /* operations that wait for nothing on the compute lane that is not over */
};

/* Where a slot stands; one of backward may first be one of recomputing. */
typedef enum { SLC_BETWEEN_SLOTS, SLC_RECOMPUTING, SLC_RECOMPUTED, SLC_IN_SLOT } slc_phase;

typedef enum { SLC_IDLE, SLC_IN_STEP, SLC_IN_EVALUATION } slc_mode;

struct sluice_runtime {
    sluice_world *world;
    slc_comm *comm;
    sluice_config config;
    char *strategy, *schedule, *recompute, *device_name;
    char *strategy_now, *schedule_now; /* that a re-plan asked for; NULL: the above */
    uint64_t fuse_bytes;               /* of a fused unit; 0: off; SLC_FUSE_AUTO */
    slc_updates updates_lane;          /* that is asked for */
    slc_planner planner;
    slc_cancel cancel; /* ends planning when the world has failed */
    sluice_optimizer optimizer;
    void (*destroy_optimizer)(sluice_optimizer *optimizer); /* NULL: the caller's */
    bool compressed;                                        /* it is a compressed one, this: */
    slc_compressed onebit;
    bool fuses;                          /* all that is trainable is one unit, exchanged as one tensor */
    bool replicas_differ;                /* onebit units have made local steps since the last exchange */
    uint32_t bad_exchange, bad_local;    /* on the communication thread: parameters whose update was not finite, on all
                                            ranks; on this one. For the next agreement; SLC_NONE */
    uint32_t norm_count;                 /* that it wants, maxima too, of all parameters */
    uint32_t norm_words;                 /* of the agreement, for them */
    int64_t (*norm_bins)[SLC_NORM_BINS]; /* what this rank has measured of them in this step; a maximum: the first */
    int rank, size;

    slc_device *device;
    slc_stream compute, updates; /* of the caller; of the communication thread */

    sluice_layer **layers;
    sluice_param **params;
    sluice_activation **activations;
    sluice_workspace **workspaces;
    uint32_t layer_count, param_count, activation_count, workspace_count;
    uint64_t reserved_bytes;
    uint64_t registered_elements, activation_bytes, workspace_bytes; /* sums of all that is registered */

    bool committed;
    slc_job job;
    slc_plan *plan;
    slc_unit_state *units;
    slc_region *regions; /* of each slot */
    slc_arena *arena;
    unsigned char *base; /* of the arena */
    int64_t *agreement;
    uint32_t agree_item; /* of the training program */
    void *staging;
    uint64_t budget_bytes, dp_bytes, rss_commit_bytes;
    uint64_t most_arena_bytes; /* of all plans so far */
    bool attached;             /* the arena is known to peers, with messages' scratch here: */
    void *scratch;

    struct slc_measure *measure; /* measure.h */
    slc_recording *recording;    /* NULL: off */
    slc_check *check;            /* NULL: off */
    uint32_t plan_number;        /* which plan runs, from 1 */
    uint64_t plan_steps;         /* ended under it */
    bool replan_due;             /* with measured times, after some steps */
    double predicted_step_s;     /* from measured times; 0: none */

    slc_mode mode;
    slc_pass train, evaluate;
    slc_gate computed; /* items of the compute lane ever, over all passes: slots, and updates that run there */
    uint32_t computed_posted;
    uint32_t next_operation; /* number that the next submitted operation will get */
    uint32_t cursor;         /* next slot of the running pass */
    slc_phase phase;
    const sluice_layer *open_layer;  /* between begin and end; else NULL */
    sluice_direction open_direction; /* of what it computes: forward while it recomputes */
    uint32_t open_slot;
    uint64_t step; /* updates applied */
    slc_step_state steps[2];
    uint64_t step_started_ns, bytes_before;

    sluice_status failed;
    char *failed_line;
    bool alike; /* the failure of the call in course is the same on every rank */
};

/* Makes every later call return `status` with this thread's error line; returns it. The runtime takes part in nothing
 * any more, so the other ranks are told at once, unless they know (slc_runtime_alike). */
sluice_status slc_runtime_fail(sluice_runtime *rt, sluice_status status);
/* Returns `status`, a failure that every rank finds in this call, as a verdict on what they have exchanged. */
sluice_status slc_runtime_alike(sluice_runtime *rt, sluice_status status);
/* The failure of before, or of the world; SLUICE_OK. */
sluice_status slc_runtime_healthy(sluice_runtime *rt);
/* Every public call begins with it, which notes that it was made. */
sluice_status slc_runtime_require(sluice_runtime *rt, bool committed, const char *call);
/* The same for a call on `object`, which the error names and heartbeats tell; kept by pointer, as `call` is. */
sluice_status slc_runtime_require_of(sluice_runtime *rt, bool committed, const char *call, const char *object);
/* Between steps: as sluice_runtime_sync, for calls that need everything applied. */
sluice_status slc_runtime_drain(sluice_runtime *rt);

/* ---- rows.c: which rows a layer reads ---- */
/* Units are made. Errors: MEMORY. */
sluice_status slc_look_ups_commit(sluice_runtime *rt);
/* A step begins, or the next pass of an evaluation. */
void slc_look_ups_forget(sluice_runtime *rt);
/* ORDER unless the rows of a micro-batch that begins are known. */
sluice_status slc_look_ups_check(const sluice_runtime *rt, uint32_t micro_batch);
/* How many of `count` operations may be submitted: up to the first that gathers rows of which it is not known which. */
uint32_t slc_look_ups_known(const sluice_runtime *rt, const slc_program *program, const uint32_t *operations,
                            uint32_t count);

/* ---- gradients.c: around a backward slot ---- */
sluice_status slc_gradients_begin(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot);
sluice_status slc_gradients_end(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot);

/* ---- commit.c ---- */
/* ARGUMENT unless the optimizer is a compressed one; `what` is asked to be onebit. */
sluice_status slc_engine_allow_onebit(const sluice_runtime *rt, const char *what);

/* ---- units.c: where parameters lie ---- */
sluice_status slc_engine_make_job(sluice_runtime *rt);
void slc_engine_destroy_job(sluice_runtime *rt);

/* ---- fuse.c: which layers share a unit ---- */
/* What a configuration (NULL: the setting) says: bytes of a fused unit; 0: off; SLC_FUSE_AUTO. Errors: ARGUMENT. */
sluice_status slc_engine_fuse_bytes(const char *fuse, uint64_t *bytes);
/* Of the job as it is, a unit for each layer: last[l] is the last layer whose own trainable parameters lie in layer l's
 * unit, l itself where it begins no group. `alone` of each unit. Collective, equal on all ranks: rank 0 decides.
 * Errors: MEMORY; the planner's. */
sluice_status slc_engine_fuse_layers(sluice_runtime *rt, uint32_t *last);

/* The part of block `block` that `rank` owns, in elements of the unit; for dp values everything is owned. */
typedef struct {
    uint64_t first, count;
    uint64_t shard_first; /* of it in the shard layout */
} slc_part;
slc_part slc_unit_part(const slc_unit *unit, uint32_t world, uint64_t block, uint32_t rank);
/* What of `part` belongs to a parameter; count 0: nothing. */
slc_part slc_part_of_param(const slc_part *part, const sluice_param *param);

/* ---- regions.c: the workspaces of a slot share one region ---- */
/* Packs them, and adds the regions to the job. */
sluice_status slc_engine_make_regions(sluice_runtime *rt);
/* The three sizes of activations and workspaces in a memory report. */
sluice_status slc_engine_account_activations(const sluice_runtime *rt, sluice_memory_report *report);

/* ---- agreement.c ---- */
sluice_status slc_engine_compare_registration(sluice_runtime *rt);
/* `plan` NULL: this rank has none, which is a difference too. */
sluice_status slc_engine_compare_plan(sluice_runtime *rt, const slc_plan *plan);
sluice_status slc_engine_least_budget(sluice_runtime *rt, uint64_t *budget_bytes);

/* ---- place.c ---- */
sluice_status slc_engine_make_arena(sluice_runtime *rt);
/* Where a buffer of the plan that runs lies; NULL: it has none such. */
void *slc_engine_buffer(const sluice_runtime *rt, slc_buffer_kind kind, uint32_t unit, uint32_t index);
/* Claims what the plan keeps, finds all addresses, makes its programs ready. Nothing of another plan is claimed. */
sluice_status slc_engine_place_plan(sluice_runtime *rt);

/* ---- pass.c: running a program on two lanes ---- */
sluice_status slc_pass_init(sluice_runtime *rt, slc_pass *pass, const slc_program *program, bool evaluate);
void slc_pass_fini(slc_pass *pass);
/* Starts the next run of the program; the one before may still have operations in flight. */
sluice_status slc_pass_begin(sluice_runtime *rt, slc_pass *pass);
/* Rows are known now: operations of the running pass that this kept back go on. */
sluice_status slc_pass_go_on(sluice_runtime *rt, slc_pass *pass);
/* Waits until the state of the step before the last, which the next pass will use, is no longer used. */
sluice_status slc_pass_settle(sluice_runtime *rt, slc_pass *pass);
/* Runs what is late of the last step, if anything is; waits until all operations are complete. */
sluice_status slc_pass_drain(sluice_runtime *rt, slc_pass *pass);
/* Has the last step left late operations? */
static inline bool slc_pass_pending(const slc_pass *pass)
{
    const slc_lane_order *late = &pass->order[SLC_PASS_DRAIN];
    return pass->has_previous && (late->count || late->computed_count);
}
/* Runs the updates of the compute lane that stand before slot number `cursor`; waits for what that needs, claims its
 * memory. exposed_s grows by what was waited, not by the updates. */
sluice_status slc_pass_slot_begin(sluice_runtime *rt, slc_pass *pass, double *exposed_s);
sluice_status slc_pass_slot_end(sluice_runtime *rt, slc_pass *pass);
/* Behind the last slot: submits and runs everything left, and waits until operation `item` (SLC_NONE: all) is complete,
 * if it runs in this pass. */
sluice_status slc_pass_wait(sluice_runtime *rt, slc_pass *pass, uint32_t item, double *exposed_s);
/* Claims what the plan says, at commit (statics) or when an item starts. */
sluice_status slc_engine_claim(sluice_runtime *rt, const slc_claim *claim);
sluice_status slc_pass_claims(sluice_runtime *rt, slc_pass *pass, uint32_t item, bool begin);

/* ---- param_io.c ---- */
/* Claims or releases the staging buffer: it is claimed while it is used, as everything else. */
sluice_status slc_staging_claim(sluice_runtime *rt, bool claim);

/* An array of a parameter: 0 its values (the fp32 masters, where there are some), 1 and on its optimizer states.
 *
 * Each narrows elements [*first, *first + *count) to the first run that is this rank's own part, or that it keeps in
 * any form, its own part or all; false: none. */
bool slc_param_owned(const sluice_param *param, uint64_t *first, uint64_t *count);
bool slc_param_kept(const sluice_param *param, uint32_t which, uint64_t *first, uint64_t *count);
/* Of a run that slc_param_owned gave; in fp32. */
sluice_status slc_param_get_owned(const sluice_param *param, uint32_t which, uint64_t first, uint64_t count,
                                  float *dst);
/* The squares of all that this rank owns, to a norm's bins. */
sluice_status slc_param_add_owned(const sluice_param *param, uint32_t which, int64_t *bins);
/* As sluice_param_write, of any array, at any time between steps; waits for nothing. */
sluice_status slc_param_put(sluice_param *param, uint32_t which, uint64_t first, uint64_t count, const float *src);

/* ---- operations.c ---- */
/* The collective (or call) of an operation, but for its waits. */
sluice_status slc_operation_fill(sluice_runtime *rt, slc_pass *pass, uint32_t item, slc_operation *context, slc_op *op);

/* ---- non_finite.c: with nan = stop an error, else nothing ---- */
/* Of a step whose agreement is over. Collective where it is an error. */
sluice_status slc_engine_check_finite(sluice_runtime *rt, const slc_step_state *step);
/* Of exchanges that no agreement has told of; when everything is complete. */
sluice_status slc_engine_check_exchanges(const sluice_runtime *rt);

/* ---- norms.c: of whole parameters, for an optimizer that wants them ---- */
sluice_status slc_norms_create(sluice_runtime *rt);
void slc_norms_destroy(sluice_runtime *rt);
/* This rank's sums to the agreement's words, and are zero again; the ranks' sums to norms, of which the optimizer is
 * told where the step is not skipped. */
void slc_norms_pack(sluice_runtime *rt, int64_t *words);
void slc_norms_unpack(const sluice_runtime *rt, const int64_t *words, slc_step_state *step);

/* ---- update.c ---- */
/* A run of elements of one parameter, whole or owned as its unit's strategy says, but for its gradient. */
sluice_update slc_update_of(const sluice_runtime *rt, uint32_t unit, const sluice_param *param, const slc_part *range,
                            const slc_step_state *step);
sluice_status slc_update_unit(sluice_runtime *rt, const slc_item *item, const slc_step_state *step);
/* The same on the caller's thread, shared out among the compute threads; measured. Not of onebit units. */
sluice_status slc_update_on_compute(sluice_runtime *rt, const slc_item *item, const slc_step_state *step);
/* Looks at the own part of a reduced gradient: norm bins, non-finite values, the optimizer's norms. */
sluice_status slc_inspect_reduced(sluice_runtime *rt, const slc_item *item, slc_step_state *step);
/* Where the reduced gradient of an owned part lies, of its unit's reduced_dtype. */
const void *slc_reduced_at(const sluice_runtime *rt, uint32_t unit, const slc_part *part);

#endif
