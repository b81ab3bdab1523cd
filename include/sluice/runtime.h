/* The hook API: a training binary registers its layers, commits, and brackets its compute; the runtime moves parameters
 * and gradients around it inside the budget.
 *
 * Life: create -> layers, parameters, activations, workspaces in forward order -> commit -> write parameters ->
 * { step_begin, M x (rows_set if a layer looks rows up, forward of every layer in order, backward of every layer in
 * reverse order), step_end }.
 *
 * Threads: one thread calls a runtime, its layers, parameters, activations and workspaces at a time. Every rank makes
 * the same calls in the same order, evaluating, reading and saving included: rank 0 cannot do them alone. "Collective"
 * says that a function waits for the other ranks; "local" says that it does not.
 *
 * Errors: a call that is refused before it has changed anything may be mended and made again: wrong arguments, any call
 * before commit that belongs after it, a registration after commit, a call that belongs between steps, inside a step or
 * inside an evaluation and comes elsewhere, rows_set, a plan that re-planning cannot make, a checkpoint that cannot be
 * read or written. Every other error leaves the runtime failed, as a slot does that comes out of order or outside of a
 * step, and step_end and evaluate_end if a slot has not ended: each later call returns the same status and line. A rank
 * that fails alone can take part in nothing any more, so the other ranks hear of it at once ("rank 1 failed: ...",
 * PEER) and the world has failed. If all ranks fail together (BUDGET or MISMATCH at commit, a gradient that is not
 * finite) each says the same, and the world stays good for another runtime. destroy never communicates. A function that
 * returns an address returns NULL and logs why.
 *
 * These errors are every function's and are not repeated: ARGUMENT for a pointer that is NULL if nothing says that it
 * may be, and for a struct that was not begun with its size (sluice/init.h); UNSUPPORTED for a struct of a newer
 * program that sets more fields than this library knows; ORDER for a call at another time than its section or comment
 * says; MEMORY; that of the runtime once it has failed; after commit PEER, TIMEOUT or MISMATCH once another rank has
 * failed, stalled or made another call (sluice_world_check). With SLUICE_ENGINE_CHECK=on, MISMATCH names what ranks do
 * differently, and ORDER what is written outside of its life. "Errors" at a function lists what comes on top of these.
 * Functions that return no status cannot fail, also in a runtime that has failed; if they are given NULL they return 0,
 * false, fp32, NULL or the word "none", and those that return nothing do nothing.
 *
 * Units: sizes are bytes if a name ends in _bytes, else elements; times are seconds. Arrays are row-major and
 * contiguous.
 *
 * Memory: the runtime owns all that it hands out, up to sluice_runtime_destroy: layers, parameters, activations and
 * workspaces (there is nothing to free), their names, and the memory that addresses point to. Descriptions and the
 * config are copied, strings too; config.optimizer must outlive the runtime. The world is the caller's and outlives the
 * runtime. When a slot begins, memory holds:
 *   values         what was written or updated; zero if nothing ever was. Read only.
 *   gradients      from sluice_param_gradient: zero in the first slot of a step that adds (accumulate each: of a
 *                  micro-batch), then what was added. A parameter that no slot asked for has gradient zero.
 *                  From sluice_param_gradient_fresh: undefined if it sets *fresh.
 *   activations    undefined in the slot where their life begins; then what was written, until their life ends.
 *   workspaces     undefined in every slot, and in each micro-batch anew.
 * Nothing is cleared, so memory that is zero in one step may hold other buffers' bytes in the next.
 *
 * SLUICE_ENGINE_CHECK=on finds programs that rely on more than this, and ranks whose calls differ (docs/guide.md).
 *
 * Choices: one of a closed set is an enum, which the compiler checks. A choice is a string if its name is looked up in
 * what a build, a plugin or a file can extend (schedules, optimizers, devices, transports), if it may carry an argument
 * ("random:7", "64KiB", "1gbit,50us"), or if it names what the program has named itself (layers, states).
 *
 * Numerics are settings of the job: with equal world size, batch split, threads, precision, `accumulate` and `tied`,
 * weights are equal to the bit for every strategy, schedule, block size and budget. */
#ifndef SLUICE_RUNTIME_H
#define SLUICE_RUNTIME_H

#include <sluice/config.h>
#include <sluice/dtype.h>
#include <sluice/init.h>
#include <sluice/optimizer.h>
#include <sluice/status.h>
#include <sluice/world.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_runtime sluice_runtime;       /* trains one model on one world */
typedef struct sluice_layer sluice_layer;           /* a forward and a backward slot of each micro-batch */
typedef struct sluice_param sluice_param;           /* an array of values, with its gradient and optimizer state */
typedef struct sluice_activation sluice_activation; /* memory that lives from slot to slot */
typedef struct sluice_workspace sluice_workspace;   /* memory inside one slot */
typedef struct sluice_stream sluice_stream;         /* a queue of a device's work, which runs in order */

/* The two slots of a layer in a micro-batch. */
typedef enum { SLUICE_FORWARD = 0, SLUICE_BACKWARD = 1 } sluice_direction;

/* Makes a runtime of this rank on `world`, without a layer. Local; the caller destroys *out before the world. `config`
 * is copied. Errors: ARGUMENT (a field that holds no value of its kind, or is out of its range; no optimizer of this
 * name; settings of the optimizer; the strategy onebit without a compressed optimizer; a setting SLUICE_... that cannot
 * be read), UNSUPPORTED (the device is not in this build, or cannot do what the other fields or the world ask; clip
 * with an optimizer that measures norms; a compressed optimizer with accumulate each). Names of strategies and
 * schedules are looked up at commit. */
SLUICE_API sluice_status sluice_runtime_create(sluice_world *world, const sluice_config *config, sluice_runtime **out);
/* Ends the runtime and frees all that it handed out. NULL is allowed, and so are all times, inside a step too, and a
 * runtime or world that has failed. Local; operations in flight end, or are dropped inside a step, after which the
 * world has failed. */
SLUICE_API void sluice_runtime_destroy(sluice_runtime *rt);

/* ---- Registration, before commit: local, ORDER after it ---- */

/* Adds a layer after all earlier ones. `name` is copied. Errors: ARGUMENT (no name, or one that another layer has). */
SLUICE_API sluice_status sluice_layer_add(sluice_runtime *rt, const char *name, sluice_layer **out);

/* Overrides the runtime's strategy for the parameters that this layer brings ("dp", "oss", "sdp", "fsdp", "onebit").
 * Errors: ARGUMENT (another name; onebit without a compressed optimizer). */
SLUICE_API sluice_status sluice_layer_strategy(sluice_layer *layer, const char *strategy);

/* Says that this layer can run its forward again just before its backward: its recomputable activations then need no
 * memory in between, if the plan chooses so (sluice_layer_recomputes). */
SLUICE_API sluice_status sluice_layer_can_recompute(sluice_layer *layer, bool can);

/* Overrides the runtime's precision for the parameters that this layer brings, before it brings the first. A tied
 * parameter has its own layer's everywhere. Errors: ARGUMENT (neither fp32 nor bf16), ORDER (the layer has a parameter
 * already). */
SLUICE_API sluice_status sluice_layer_precision(sluice_layer *layer, sluice_dtype precision);

/* A parameter of a layer. */
typedef struct {
    size_t struct_size;     /* of this struct; SLUICE_INIT sets it */
    const char *name;       /* unique in its layer; its full name is LAYER.NAME */
    uint64_t count;         /* elements; > 0 */
    bool frozen;            /* no gradient, no optimizer state, never updated */
    bool no_decay;          /* the optimizer applies no weight decay (biases, norms) */
    bool tied;              /* other layers will use it too: it becomes a unit of its own */
    bool no_backward_value; /* this layer's backward does not read the value, only adds to the gradient */
    /* The number of elements of a row, for a tied, trainable parameter of which this layer reads only some rows in a
     * micro-batch, and adds only to the gradient of these rows. The parameter has count / row_elements rows, at most
     * 2^31 - 1. Before the layer runs, sluice_rows_set says which rows it reads. 0: the layer reads all of it. */
    uint64_t row_elements;
    uint64_t most_rows; /* different rows in a micro-batch, at most; > 0 with row_elements, else 0 */
    uint32_t group;     /* below 65536: which of sluice_step_options.group_rates is its own */
} sluice_param_desc;

/* Adds a parameter to a layer. All parameters together have at most 2^50 elements; all activations, all workspaces, all
 * that is reserved at most 2^54 bytes each. A registration that would exceed that is refused by name and adds nothing.
 * Errors: ARGUMENT (no name, or one that the layer has already; 0 elements or too many; row_elements and most_rows that
 * do not fit each other, the count, `tied` or `frozen`; a group that is too high). */
SLUICE_API sluice_status sluice_param_add(sluice_layer *layer, const sluice_param_desc *desc, sluice_param **out);

/* Makes a tied parameter of an earlier layer valid in `layer` too; both layers add to one gradient. Errors: ARGUMENT
 * (not added as tied; not of an earlier layer of this runtime; used by this layer already). */
SLUICE_API sluice_status sluice_param_use(sluice_layer *layer, sluice_param *param);

/* Memory that lives from slot to slot. */
typedef struct {
    size_t struct_size;             /* of this struct; SLUICE_INIT sets it */
    const char *name;               /* for messages and reports; LAYER.NAME */
    uint64_t bytes;                 /* > 0 */
    sluice_direction first;         /* its life begins with this layer's forward (default) or backward */
    const char *last_layer;         /* ... and ends with this layer's slot (may be added later); NULL: this layer */
    sluice_direction last;          /* ... forward or backward */
    const char *last_forward_layer; /* the last layer that reads it in forward, for evaluation; NULL: last_layer, if
                                       that is given and `last` is forward; else the layer after this one */
    bool recomputable;              /* this layer's forward makes it and its backward reads it, nobody else does; if the
                                       layer recomputes, its content does not survive until then. The layer must be able
                                       to recompute. */
    /* Instead of last_layer and last_forward_layer: the layers themselves, if they are added already. NULL: the
     * names say it. */
    const sluice_layer *last_handle, *last_forward_handle;
} sluice_activation_desc;

/* Memory of one micro-batch that lives from slot to slot, both included. Its address stays the same until a re-plan,
 * which step_end may bring. In evaluation there is no backward: an activation whose life begins in forward can be read
 * until forward_end of the layer that last_forward_layer names, so the last layer's output, if nothing is said,
 * until that layer's own forward_end: take the loss before it.
 * Errors: ARGUMENT (no name, 0 bytes or too many; a direction that is none; a last layer of another runtime, or one by
 * name and another by handle; recomputable, but not living from its layer's forward to its layer's backward). A last
 * layer that is not there, and a life that ends before it begins, are ARGUMENT at commit. */
SLUICE_API sluice_status sluice_activation_add(sluice_layer *layer, const sluice_activation_desc *desc,
                                               sluice_activation **out);
/* Adds `count` activations as sluice_activation_add adds one, out[i] for descs[i]: all, or after an error none. All
 * descs have one struct_size. `count` may be 0. */
SLUICE_API sluice_status sluice_activations_add(sluice_layer *layer, const sluice_activation_desc *descs,
                                                uint32_t count, sluice_activation **out);

/* Memory inside one slot. */
typedef struct {
    size_t struct_size;         /* of this struct; SLUICE_INIT sets it */
    const char *name;           /* for messages and reports; LAYER.NAME */
    uint64_t bytes;             /* > 0 */
    sluice_direction direction; /* the slot: the layer's forward or its backward */
    uint32_t first, last;       /* operations of the slot, inclusive: 0 to UINT32_MAX is all of it */
} sluice_workspace_desc;

/* Memory valid only inside the forward or the backward of `layer`, of one micro-batch, from its operation number
 * `first` to `last`: the numbers are the binary's own count of operations in that slot, and mean nothing else than
 * their order. Workspaces of one slot whose lifetimes do not meet share memory. The content survives neither `last` nor
 * the slot. The same space in forward and in backward is two workspaces; recomputation uses the forward's. Ranks may
 * differ in their workspaces, as their processors and threads ask for: in each slot all make room for the rank that
 * needs the most. Errors: ARGUMENT (no name, 0 bytes or too many; a direction that is none; first above last). */
SLUICE_API sluice_status sluice_workspace_add(sluice_layer *layer, const sluice_workspace_desc *desc,
                                              sluice_workspace **out);

/* Set the bytes of an activation or a workspace in steps of one shape, 1 <= shape <= SLUICE_SHAPES_MOST. Steps may come
 * in shapes of several sizes, as when sequences grow. `bytes` is not more than the activation or workspace was added
 * with; that size holds in shape 0 and in every shape for which none is set. A shape runs under a plan of its own
 * within the same budget; the plan of shape 0 would hold it too, so all shapes are known to fit at commit. Errors:
 * ARGUMENT (another shape, 0 bytes or too many). */
enum { SLUICE_SHAPES_MOST = 7 };
SLUICE_API sluice_status sluice_activation_shape(sluice_activation *activation, uint32_t shape, uint64_t bytes);
SLUICE_API sluice_status sluice_workspace_shape(sluice_workspace *workspace, uint32_t shape, uint64_t bytes);

/* The shape whose plan runs: what the last step_begin asked for, or 0. Local; 0 for NULL. */
SLUICE_API uint32_t sluice_runtime_shape(const sluice_runtime *rt);

/* Counts `bytes` that the binary keeps itself (inputs, targets) in the budget, besides those reserved before: of the
 * device's memory, as the budget is. Nothing is allocated. If ranks reserve different sizes, all count the largest.
 * `what` is for messages and may be NULL. Errors: ARGUMENT (too many bytes). */
SLUICE_API sluice_status sluice_runtime_reserve(sluice_runtime *rt, const char *what, uint64_t bytes);

/* ---- Commit ---- */

/* Collective. Checks that every rank registered the same, plans, packs, and allocates the arena. Errors: BUDGET (says
 * the smallest budget that works and the largest consumers), MISMATCH (names layer and rank, or the setting), ARGUMENT
 * (there is no layer or no parameter: nothing has changed; a strategy, schedule or last layer that is not there; an
 * activation whose life ends before it begins, or that is recomputable if its layer is not; plan_file does otherwise
 * than a layer's strategy or `recompute` asks), FORMAT (the file of strategies, or plan_file: with its place),
 * UNSUPPORTED (1-bit LAMB with compat and layers of different precisions or strategies), INTERRUPTED (the world failed
 * while rank 0 planned), SYSTEM (shared memory), ORDER (another runtime of this world is committed: nothing has
 * changed).
 */
SLUICE_API sluice_status sluice_runtime_commit(sluice_runtime *rt);

/* Collective, between steps: makes a new plan and moves values and optimizer states to it, not changing a bit; weights
 * go on as if it had never happened. `strategy` and `schedule` as in sluice_config, NULL: as before; `budget_bytes` 0:
 * as before. Addresses (of activations, workspaces) change. Errors: if no plan can be made (ARGUMENT, FORMAT, BUDGET,
 * MEMORY), or ranks hold different weights (ORDER; sluice_runtime_replicas_equal), the old plan stays and training may
 * go on; NON_FINITE as from sluice_runtime_sync.
 *
 * Schedules that want times ("ilp", the default; "portfolio", "priority", "greedy") do this by themselves: they begin
 * with the serial schedule, measure two steps after a first one, and change at the end of the third. That step_end
 * measures the link, plans on rank 0 and moves what is kept: usually about a second, once, and no longer than the
 * planner's limits (docs/what-a-plan-says.md). Later steps pay nothing. A program that times its steps leaves out the
 * first four; a run of three steps has trained under "serial" alone. */
SLUICE_API sluice_status sluice_runtime_replan(sluice_runtime *rt, const char *strategy, const char *schedule,
                                               uint64_t budget_bytes);

/* Returns true if this rank holds the layer. In a pipeline a rank holds those of its stage: it runs their slots alone,
 * and parameters elsewhere have no address. Without one it holds all; true before commit. False for NULL. Local. */
SLUICE_API bool sluice_layer_here(const sluice_layer *layer);
/* Returns true if the plan wants this layer's forward run again before its backward. False before commit, and for NULL.
 */
SLUICE_API bool sluice_layer_recomputes(const sluice_layer *layer);
/* Returns true if this layer's slots come in the step that runs. False inside a step that leaves the layer out
 * (sluice_step_options.layers_left_out), and for NULL; else true. Local. */
SLUICE_API bool sluice_layer_runs(const sluice_layer *layer);

/* ---- Addresses ---- */

/* The types of a parameter's values and of its gradient, fixed when it is added. */
SLUICE_API sluice_dtype sluice_param_dtype(const sluice_param *param);
SLUICE_API sluice_dtype sluice_param_gradient_dtype(const sluice_param *param);

/* The value, whole: `count` elements of sluice_param_dtype, aligned as 16 of them, to be read from *_begin to *_end of
 * a layer that uses it; in each slot it may be another address. Elsewhere NULL, with the reason as this thread's error
 * (ORDER; ARGUMENT for NULL) and one line a parameter in the log, as from the functions that follow. */
SLUICE_API const void *sluice_param_value(sluice_param *param);

/* The gradient to add to (+=): `count` elements of sluice_param_gradient_dtype, valid inside the backward of a layer
 * that uses the parameter. NULL elsewhere and for a frozen parameter. */
SLUICE_API void *sluice_param_gradient(sluice_param *param);

/* Returns the gradient as sluice_param_gradient does, but if nothing has been added in this step yet *fresh is set and
 * the content is undefined: the caller must write every element instead of adding. Saves a pass over memory. */
SLUICE_API void *sluice_param_gradient_fresh(sluice_param *param, bool *fresh);

/* The activation's bytes, 64-byte aligned; NULL before commit. A re-plan, which step_end may bring, changes addresses:
 * ask in each step. */
SLUICE_API void *sluice_activation_data(sluice_activation *activation);
/* The workspace's bytes, 64-byte aligned, valid in its direction's slot of its layer (a forward's also between
 * recompute_begin and _end, at another address); NULL elsewhere. */
SLUICE_API void *sluice_workspace_data(sluice_workspace *workspace);

/* ---- The step ---- */

/* The options of a step, all of which are equal on every rank, because a rank updates what it owns by its own options.
 * Weights of ranks or micro-batches belong in the gradients that a rank adds. */
typedef struct {
    size_t struct_size;    /* of this struct; SLUICE_INIT sets it */
    double learning_rate;  /* of this step: schedules are the program's */
    double gradient_scale; /* what sums over ranks and micro-batches are multiplied by; 0: 1/(N*M), N ranks and M
                           micro-batches of the step. A rank's own gradient, if it is compressed, is scaled by N
                           times this. For a mean over T targets, of which ranks or micro-batches have different
                           numbers, 1/T, if each adds the gradient of its sum (docs/porting.md). */
    bool exchange;         /* all ranks hold the same weights at this step's end, also if the optimizer would make a
                              local step (0/1 Adam): before reading, evaluating or saving */
    /* Parameters of group g (sluice_param_desc.group) have the learning rate learning_rate * group_rates[g] in this
     * step. group_count of them, at least one more than the highest group; copied. NULL: all have learning_rate. Not
     * with a compressed optimizer. */
    const double *group_rates;
    uint64_t group_count;
    /* The number of micro-batches of this step, at most sluice_config.micro_batches; 0: all. The plan and the types of
     * gradients stay, and micro-batches that are left out move nothing. Steps with fewer, or without some layers, are
     * measured slot by slot alone, and predicted_step_s is 0. */
    uint32_t micro_batches;
    /* Layers that this step leaves out, layer_left_out_count of them in any order; copied. Their slots do not come, and
     * nothing is gathered, reduced, inspected or updated of parameters that they alone use, which keep values and
     * states to the bit. The first and the last layer always run, and a tied parameter always takes part. A layer that
     * runs reads what the last one before it that ran has written: an activation's life must last for that. A
     * compressed optimizer compresses and exchanges nothing of them either, and their errors stay; with `exchange` a
     * layer that has made local steps since its last exchange is kept. Not in a pipeline, nor with onebit.compat of
     * 1-bit LAMB, which exchanges all parameters as one. NULL: every layer runs. */
    const sluice_layer *const *layers_left_out;
    uint64_t layer_left_out_count;
    /* The step's shape (sluice_activation_shape). Where it is another than the last step's, step_begin is collective:
     * it ends what is pending, makes a plan for the shape if it has none yet, and moves over, which changes no bit.
     * Later steps of the shape find that plan. An evaluation has shape 0, and moves over too. Under a compressed
     * optimizer and in a pipeline all shapes run under the plan of shape 0. */
    uint64_t shape;
    /* The length of this step's sequences as a share of the longest that shape 0 has, in (0, 1]. Times of slots are
     * fitted over it, so that the first plan of a shape is made from what steps of other lengths took. 0: the share of
     * its bytes that activations take in the step's shape. */
    double extent;
    /* The layers that steps like this one draw, layer_drawn_count of them in any order, and the probability in (0, 1]
     * with which each is kept; copied. Layers that are not named are always kept. Plans from measured times are made
     * for the shortest mean step over such draws, predicted_step_s is that mean, and a new plan follows when the mean
     * number of kept layers has moved by 5 % of all layers. What this step itself leaves out is layers_left_out. NULL:
     * plans count on every layer. */
    const sluice_layer *const *layers_drawn;
    const double *layer_probabilities;
    uint64_t layer_drawn_count;
} sluice_step_options;

/* The times, memory and traffic of a step. */
typedef struct {
    size_t struct_size;   /* of this struct; SLUICE_INIT sets it */
    uint64_t step;        /* from 1 */
    double step_s;        /* since the last step_begin's call */
    double exposed_s;     /* time that compute stood at gates in this step */
    bool compressed;      /* a step of the compressed phase */
    double gradient_norm; /* of the whole reduced, scaled gradient, before clipping; NaN without clip and measure_norm.
                             In the compressed phase without the layers under onebit, but in 0/1 Adam's refreshes, which
                             average them. */
    double own_norm;      /* what layers under onebit were clipped by: of this rank's own gradient of all of them; NaN
                             without clip or such layers */
    bool skipped;         /* NAN_SKIP: a gradient was not finite, nothing was updated */
    uint64_t peak_bytes;  /* highest end of any claim so far */
    uint64_t bytes_sent;  /* by this rank in this step, counted as messages would carry them */
    uint32_t plan;        /* which plan ran it: 1 is commit's, each re-plan counts one up */
    double predicted_step_s; /* by that plan, from measured times; 0: not known, or the step ran less than it is for */
    double planning_s;       /* what step_begin took to move over to another shape, and step_end to plan again and to
                                move over; 0: they did not */
} sluice_step_report;

/* Begins a step, between steps. Local, but it may wait for what the step before left to do. Errors: ARGUMENT (a
 * learning_rate, gradient_scale or group rate that is not finite; fewer group rates than groups; more micro_batches
 * than the config has; a shape that nothing was registered for; an extent below 0 or above 1; among the layers left out
 * a NULL, one of another runtime, the first or the last, or, with `exchange`, one that has made local steps since its
 * last exchange), UNSUPPORTED (group rates with a compressed optimizer; fewer micro-batches in a pipeline; layers left
 * out in a pipeline or with onebit.compat of 1-bit LAMB, or one that looks rows up), MISMATCH (ranks begin steps of
 * different shapes). */
SLUICE_API sluice_status sluice_step_begin(sluice_runtime *rt, const sluice_step_options *options);
/* Says which rows of a parameter the layer that added it reads in the micro-batch that comes next, in any order, each
 * row as often as it is looked up. The parameter was added with row_elements. Local; called after step_begin or
 * evaluate_begin and, from the second micro-batch (or evaluated forward) on, after the last slot of the one before;
 * before forward_begin of the first layer, which returns ORDER without it. The call sets places[i] to the place of
 * rows[i]: inside the layer that added the parameter, sluice_param_value and _gradient are tables in which row rows[i]
 * begins at element places[i] * row_elements. They have as many rows as there are different ones in `rows` (joint: all
 * rows, and places[i] == rows[i]). In the gradient's table only these rows may be touched. Both arrays stay the
 * caller's and may be the same. Costs O(count + rows / 64). Errors, which change nothing: ARGUMENT (a row that is not
 * there, more different ones than most_rows, a parameter without row_elements), ORDER (at another time, or set for this
 * micro-batch already). */
SLUICE_API sluice_status sluice_rows_set(sluice_param *param, const int32_t *rows, uint64_t count, int32_t *places);

/* Bracket the compute of a layer's slots, inside a step; the forwards also inside an evaluation. *_begin waits until
 * what the layer uses is there, *_end lets communication have what the layer made; neither waits for other ranks'
 * compute but through the plan's operations. Errors: ORDER (another call must come: the line names it; or rows that
 * sluice_rows_set has not given). After these errors, as after all others here, the runtime has failed. */
SLUICE_API sluice_status sluice_forward_begin(sluice_layer *layer);
SLUICE_API sluice_status sluice_forward_end(sluice_layer *layer);
/* Bracket the forward that a layer runs again before backward_begin if sluice_layer_recomputes says so: in between the
 * values are valid, recomputable activations and workspaces may be written, and everything else that forward wrote must
 * be left alone. */
SLUICE_API sluice_status sluice_recompute_begin(sluice_layer *layer);
SLUICE_API sluice_status sluice_recompute_end(sluice_layer *layer);
SLUICE_API sluice_status sluice_backward_begin(sluice_layer *layer);
SLUICE_API sluice_status sluice_backward_end(sluice_layer *layer);

/* The kinds of tasks. */
typedef enum {
    SLUICE_TASK_FORWARD,
    SLUICE_TASK_RECOMPUTE,
    SLUICE_TASK_BACKWARD,
    SLUICE_TASK_END /* every slot has run: sluice_step_end comes next */
} sluice_task_kind;

/* A task is the slot that a program is to run next in a step. */
typedef struct {
    size_t struct_size;    /* of this struct; SLUICE_INIT sets it */
    sluice_task_kind kind; /* which of the calls above bracket it */
    uint32_t micro_batch;  /* from 0; with SLUICE_TASK_END the number of micro-batches */
    sluice_layer *layer;   /* NULL with SLUICE_TASK_END */
} sluice_task;

/* Says which slot comes next in the step, so that a program need not know the order: it runs what it is told until
 * SLUICE_TASK_END. A program that walks its layers itself need not ask. Local; it waits for nothing, changes nothing,
 * and gives the same answer until the slot has begun. Errors, after which the step goes on: ORDER (outside of a step,
 * in an evaluation, or inside a slot: the line names the call that ends it), ARGUMENT. */
SLUICE_API sluice_status sluice_step_next(sluice_runtime *rt, sluice_task *task);

/* Tells that slots which follow in this step, or evaluation, launch kernels that the process has not launched before: a
 * micro-batch has sequences of another length than all before it, say, and products of other sizes. On a GPU a first
 * launch may wait for all that the GPU has to do, a collective that waits for another rank included; so from here to
 * the end no collective is under way beside a slot. The runtime knows by itself of layers that run for the first time
 * and of new lengths that sluice_step_options.extent tells; the bundled models make this call. On the host it changes
 * nothing. Local. Errors, after which everything goes on: ORDER (between steps). */
SLUICE_API sluice_status sluice_runtime_expect_launches(sluice_runtime *rt);

/* Ends the step after its last slot. May return before all updates are done. `report` may be NULL. With clip or
 * NAN_SKIP it waits for the barrier. If the plan lets a step's reductions run into the next, a gradient that is not
 * finite is reported one call later: by the next step_end or sync. It may re-plan (sluice_runtime_replan), which is
 * collective. Errors: NON_FINITE (with NAN_STOP: names step and layer, alike on every rank), ORDER (a slot has not
 * run), what an optimizer's `update` returned (its line names optimizer and parameter; it may come with a later call).
 */
SLUICE_API sluice_status sluice_step_end(sluice_runtime *rt, sluice_step_report *report);
/* Returns when all updates are applied on every rank. Collective, between steps. Errors: NON_FINITE (as step_end). */
SLUICE_API sluice_status sluice_runtime_sync(sluice_runtime *rt);

/* Returns true if all ranks hold the same weights, to the bit, after the last step that ended. *readable, if not NULL,
 * says whether values and states may be read, evaluated, saved and re-planned.
 * - True and readable: always, but for the two cases below.
 * - False and not readable: 0/1 Adam between two exchanges, when each rank has made steps of its own. Calls that read
 *   return ORDER until a step exchanges (sluice_step_options.exchange).
 * - False and readable: 0/1 Adam with onebit.compat after its first local steps, because its exchanges leave replicas
 *   apart by roundings. sluice_param_read, sluice_param_state_read, hashes, checkpoints and re-plans that shard then
 * take each element from its owner, so that all ranks get the same bits; compute and evaluation go on with each rank's
 * own. Rank r owns the r-th N-th of each base block. Replicas of a parameter are equal again when it is written whole,
 * when a checkpoint is loaded, and after a step under oss, sdp or fsdp. Local: it waits for nothing, gives the same
 * answer on every rank, and cannot fail. */
SLUICE_API bool sluice_runtime_replicas_equal(const sluice_runtime *rt, bool *readable);

/* Evaluation: forwards only, in order, as often as wanted, equally often on every rank (on data of its own): under fsdp
 * a forward gathers values from all of them. begin is collective, between steps, and waits for pending updates. Errors:
 * ORDER (begin: ranks hold different weights, sluice_runtime_replicas_equal; end: inside a forward), NON_FINITE (begin,
 * as from sluice_runtime_sync). */
SLUICE_API sluice_status sluice_evaluate_begin(sluice_runtime *rt);
SLUICE_API sluice_status sluice_evaluate_end(sluice_runtime *rt);

/* ---- Parameters and state, between steps ---- */

/* Parameters and state are read and written in fp32: for a parameter in bf16 this is its fp32 master, which a write
 * also rounds into the values. A frozen parameter in bf16 has no master: reading it gives the rounded values. `first`
 * and `count` are in elements, [first, first + count) of the parameter; `src` and `dst` have `count` of them. All wait
 * for pending updates of this rank and so may return NON_FINITE (as sluice_runtime_sync). Errors: ARGUMENT (a range
 * beyond the end), ORDER (ranks hold different weights, sluice_runtime_replicas_equal). */

/* Writes values. Local: every rank calls it with the same data and keeps what it owns. */
SLUICE_API sluice_status sluice_param_write(sluice_param *param, uint64_t first, uint64_t count, const float *src);
/* Reads values. Collective: every rank gets the same. */
SLUICE_API sluice_status sluice_param_read(sluice_param *param, uint64_t first, uint64_t count, float *dst);
/* Write and read an optimizer state by its name ("exp_avg", "exp_avg_sq"); sluice/optimizer.h lists all names, with
 * shapes. Writing is local, reading collective, but for a rank's own arrays (below). Errors: ARGUMENT (also for a
 * frozen parameter, and for an unknown name: the line names those that there are). */
SLUICE_API sluice_status sluice_param_state_write(sluice_param *param, const char *state, uint64_t first,
                                                  uint64_t count, const float *src);
SLUICE_API sluice_status sluice_param_state_read(sluice_param *param, const char *state, uint64_t first, uint64_t count,
                                                 float *dst);
/* The sum of the squares and the largest magnitude of those elements of a state that this rank owns. Each element has
 * one owner under every strategy, so that the sum and the maximum over all ranks are those of the whole state. Local;
 * it costs reading them. Errors: those of sluice_param_state_read. */
SLUICE_API sluice_status sluice_param_state_extent(sluice_param *param, const char *state, double *squares,
                                                   double *largest);
/* Returns how many elements a state has: the parameter's count, or a length of its own; 0 if the parameter has no such
 * state now. A parameter whose unit is onebit in the plan that runs has states that are each rank's own too:
 * "error_worker", what its compression left, of all elements with the padding of the exchange; "error_server", what
 * compressing the average left, of those that this rank averages; and arrays that the optimizer keeps on each rank.
 * They are read and written locally, while ranks hold different weights too. Local; 0 for NULL and before commit. */
SLUICE_API uint64_t sluice_param_state_count(const sluice_param *param, const char *state);

/* Read and write the numbers that a compressed optimizer keeps next to its states ("frozen_at", ...; sluice/optimizer.h
 * lists all): those of the job (`param` NULL) or of a parameter; whole numbers are below 2^53. Write the same on every
 * rank. A write may change the phase, and with it the plan, so it is collective, as sluice_runtime_step_set is. Errors:
 * ARGUMENT (there is no such number, or it cannot be that; a frozen parameter, or another runtime's), NON_FINITE (as
 * sluice_runtime_sync); writing: those of sluice_runtime_commit that a plan of the new phase meets, which leave the
 * runtime failed. */
SLUICE_API sluice_status sluice_runtime_progress_read(sluice_runtime *rt, const sluice_param *param, const char *name,
                                                      double *value);
SLUICE_API sluice_status sluice_runtime_progress_write(sluice_runtime *rt, const sluice_param *param, const char *name,
                                                       double value);

/* The number of updates applied: what bias correction uses. Local, any time. */
SLUICE_API uint64_t sluice_runtime_step(const sluice_runtime *rt);
/* The number of updates of one parameter: that of the run, less the steps that left the parameter's layer out.
 * Local. */
SLUICE_API uint64_t sluice_param_updates(const sluice_param *param);
/* Sets the number of updates, and with it that of every parameter, on every rank alike. With a compressed optimizer the
 * phase follows it. Collective. Errors: ARGUMENT (2^53 or more), MISMATCH (ranks give different numbers: names the
 * rank), ORDER, and those of a failed world. */
SLUICE_API sluice_status sluice_runtime_step_set(sluice_runtime *rt, uint64_t step);

/* Tell what was registered. Local, any time, before commit too. */
SLUICE_API const char *sluice_param_name(const sluice_param *param); /* LAYER.NAME */
SLUICE_API uint64_t sluice_param_count(const sluice_param *param);   /* elements */
SLUICE_API uint32_t sluice_runtime_param_count(const sluice_runtime *rt);
/* Returns parameter number `index`, in registration order; NULL if `index` is not below the count. */
SLUICE_API sluice_param *sluice_runtime_param(const sluice_runtime *rt, uint32_t index);

/* SHA-256 (FIPS 180-4) of all parameter values (as sluice_param_read gives them) in registration order, unpadded,
 * little endian, as 64 hex digits and a final 0. Collective, between steps. Errors: as sluice_param_read. */
SLUICE_API sluice_status sluice_runtime_weights_sha256(sluice_runtime *rt, char hex[65]);

/* ---- Reports ---- */

/* One line of a memory report. */
typedef struct {
    const char *name;    /* "values", "gradients", "optimizer state", "gathered", ... */
    uint64_t peak_bytes; /* most bytes of this category claimed at one time */
} sluice_memory_category;

/* The memory of the job on this rank. */
typedef struct {
    size_t struct_size;        /* of this struct; SLUICE_INIT sets it */
    uint64_t budget_bytes;     /* 0: none given */
    uint64_t planned_bytes;    /* the packer's figure: size of the arena and what is reserved outside of it */
    uint64_t peak_bytes;       /* highest end address of any claim made, and what is reserved */
    uint64_t rss_bytes;        /* resident set without the mappings of peers' segments */
    uint64_t rss_commit_bytes; /* the same just before commit */
    uint32_t category_count;   /* of `categories` */
    sluice_memory_category categories[16]; /* in no order that means something */

    /* Activations and workspaces of one micro-batch under the plan that runs, each rounded up to 64 bytes: the sum of
     * all of them; what they take when packed alone, by the packer that packs the plan; and what no packing is below,
     * the largest live set over slots and the operations inside them. */
    uint64_t activation_sum_bytes, activation_packed_bytes, activation_bound_bytes;

    /* Memory of the host, outside of the budget, through which this process copies to and from a device whose memory
     * the host cannot touch, the inputs of its models included; 0 on "cpu". */
    uint64_t pinned_bytes;
} sluice_memory_report;

/* Fills in what the job takes of this rank's memory. After commit, at any time, also when the runtime has failed.
 * Local. Errors: ORDER (before commit). */
SLUICE_API sluice_status sluice_runtime_memory(const sluice_runtime *rt, sluice_memory_report *report);

/* The strategy that a layer's own parameters got, after commit: "dp", ...; "none" before commit and for a layer without
 * parameters. A constant. Local. */
SLUICE_API const char *sluice_layer_strategy_name(const sluice_layer *layer);
/* The number of ranks that hold the parameters that this rank holds, and this rank's own among them: all of the world,
 * or in a pipeline those of its stage. Replica r reads the sequences that rank r of a world of replicas reads. 0 for
 * NULL. Local. */
SLUICE_API uint32_t sluice_runtime_replicas(const sluice_runtime *rt);
SLUICE_API uint32_t sluice_runtime_replica(const sluice_runtime *rt);
/* The world that the runtime was made on. */
SLUICE_API sluice_world *sluice_runtime_world(const sluice_runtime *rt);
/* The stream that the binary's kernels belong on; valid as long as the runtime. Kernels of Sluice take it, as the
 * bundled models' do. On "cpu" it runs everything at once, and a binary with kernels of its own does not need it. */
SLUICE_API sluice_stream *sluice_runtime_stream(const sluice_runtime *rt);
/* Returns the stream's handle in the device's own interface: a cudaStream_t on "cuda", NULL on "cpu". A binary launches
 * its kernels on it between a slot's begin and end. All addresses that the runtime gives are device memory there; the
 * runtime has launched what fills them, and later launches what uses them, so that nothing has to be waited for. When
 * sluice_step_end returns, all that was launched on it before is done. The GPU is the current one of the thread that
 * calls. */
SLUICE_API void *sluice_stream_native(const sluice_stream *stream);
/* Returns the name of the device that the runtime computes on: "cpu", "cuda", or "cuda (emulated)" if a GPU is
 * emulated on the host. A constant. Local. */
SLUICE_API const char *sluice_runtime_device(const sluice_runtime *rt);
/* Tells the runtime that work of the program's own that belongs to a step has failed, as a kernel that it launched. The
 * call makes the runtime fail with `status` and `line` (NULL: this thread's last error), tells the other ranks, and
 * returns the status; sluice_last_error then also names the first slot that has not ended, if it is the device that
 * failed. Does nothing to a runtime that has failed. Local, at any time. Errors: ARGUMENT (a status that is no error).
 */
SLUICE_API sluice_status sluice_runtime_fail(sluice_runtime *rt, sluice_status status, const char *line);
/* Measures the link (about a second, once) and writes a profile (docs/formats.md) of this job with what the steps so
 * far took: the slowest rank's medians. Collective, between steps; rank 0 writes. Times are clean under the serial
 * schedule, if nothing runs while compute does. `model` is free text. Errors: ARGUMENT (no path or model), PATH
 * and IO (rank 0 cannot write, and other ranks get IO; training may go on), NON_FINITE (as sluice_runtime_sync). */
SLUICE_API sluice_status sluice_runtime_profile_write(sluice_runtime *rt, const char *path, const char *model);

/* Bytes that dp with the serial schedule would need: what a budget in per cent refers to. 0 before commit. Local. */
SLUICE_API uint64_t sluice_runtime_dp_bytes(const sluice_runtime *rt);

/* The instruction set that host kernels use in this process: "baseline", "avx2", "avx512". Any thread. */
SLUICE_API const char *sluice_instruction_set(void);

#ifdef __cplusplus
}
#endif
#endif
