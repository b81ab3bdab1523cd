/* The one interface through which the engine runs 1-bit Adam, 1-bit LAMB and 0/1 Adam. Each is a sluice_optimizer, for
 * averaged gradients, and functions around a compressed exchange, for units under the strategy onebit.
 *
 * Steps have phases. In the warm-up nothing is compressed: no unit is onebit, `optimizer` does everything. In the
 * compressed phase a onebit unit goes through a step in the mode that begin_step says, the same on every rank:
 *   SLC_STEP_AVERAGE   its gradients are averaged; each tensor goes to optimizer.update
 *   SLC_STEP_EXCHANGE  compress with the rank's own gradients, slc_exchange_op, apply
 *   SLC_STEP_LOCAL     local with the rank's own gradients, nothing travels; replicas of the unit's values differ from
 *                      here on until the next step of another mode is applied
 * Units that are not onebit get averaged gradients and optimizer.update in every step and mode (and, if the
 * optimizer wants norms, measure and agreed): it knows from the step's number what the phase makes of them.
 *
 * A step may leave parameters out: of these nothing is called, and nothing changes. Steps are numbered for the job, and
 * updates for each parameter: sluice_update has both numbers. Phases go by the job's; bias corrections, refreshes and
 * intervals of local steps by what the parameter has had.
 *
 * The engine calls, in the order of a run:
 *   commit             once, before everything else
 *   phase(step)        before each plan: what the job of steps from `step` on is like
 *   each step s:       begin_step(s) -> mode; measure, agreed, update (all of sluice_optimizer); compress, apply, local
 *                      (of every onebit unit once, with the tensors that the step keeps); wants_norms(s), end_step(s)
 *   progress_save      between steps, with nothing pending; progress_load likewise, after which phase is asked again
 * A step that is skipped (a gradient was not finite) gets neither `agreed` nor apply, local, update, nor end_step: the
 * next step has its number again. In that case the errors stay as compress has left them: error feedback loses nothing,
 * and an error whose exchange failed counts as 0 (compress.h).
 *
 * Threads. begin_step, phase, wants_norms, end_step, progress_* and commit: the caller's; optimizer's functions,
 * compress, apply, local: the communication thread's, one at a time. Both may run at once: updates (apply, local,
 * optimizer.update) of step s may still run while end_step(s) and begin_step(s + 1) are called, but never beyond
 * begin_step(s + 2), nor, of a parameter, beyond agreed(s + 1). So what an update reads depends on the step's number
 * alone, or is kept for two steps by its parity. If wants_norms(s) is not 0, or end_step(s) has returned a bit, the
 * engine waits for all of step s before it goes on (before end_step in the first case).
 *
 * On a device that runs ahead the communication thread issues kernels in the stream that the optimizer was created
 * with. Arrays, norms, words and *bad are then memory of the device, or of the host that the device reads and writes in
 * place; the caller's functions but begin_step, phase, wants_norms and end_step are called with nothing pending.
 *
 * Everything here is the same on every rank, but what a onebit unit's arrays hold: gradients, residues, local arrays.
 * Errors: MEMORY (commit), ARGUMENT (progress_load, counts that do not fit), ORDER (compress, apply, local in a step of
 * another mode), a kernel's. */
#pragma once

#include "lib/device/device.h"
#include "lib/kernels/compress/compress_group.h"

#include <sluice/optimizer.h>

enum { SLC_LOCAL_MAX = 2, SLC_PROGRESS_MAX = 12, SLC_PHASES_MAX = 4 };

typedef enum { SLC_STEP_AVERAGE, SLC_STEP_EXCHANGE, SLC_STEP_LOCAL } slc_step_mode;

/* A parameter's entry in the optimizer's agreement: its norms, then its maxima. `agreed` may replace them by what
 * `update` is to find there. words: as sluice_update has them. */
typedef struct {
    uint32_t parameter;
    double *norms;
    const sluice_step_words *words;
} slc_agreed;

/* Properties of a phase's job. */
typedef struct {
    bool compressed;       /* onebit may be chosen: job.compressed */
    bool refreshes;        /* some steps are SLC_STEP_AVERAGE: job.refreshes */
    bool fuses;            /* everything trainable is one unit, whose group has one shape: below */
    uint32_t local_arrays; /* of a onebit unit, fp32 per element, zero at first: job.local_arrays */
} slc_compressed_phase;

/* A parameter, by its number in registration order. */
typedef struct {
    uint64_t count; /* elements; 0 is allowed */
    bool frozen, no_decay;
} slc_compressed_parameter;

/* A parameter's role in a step, as bits: the step leaves it out; it lies in a onebit unit. */
enum { SLC_LEFT_OUT = 1, SLC_IN_ONEBIT = 2 };

/* All of a onebit unit on one rank that the step keeps. Tensors are whole parameters in registration order.
 * tensors[i].gradient is this rank's own sum over its micro-batches, and gradient_factor makes it what averaging over
 * one rank would (and clips); step and learning_rate are the step's. group has a shape for each tensor, with its count.
 *
 * If the phase fuses, group has one shape of slc_flat_elements elements instead, and workers one residue; local[0][0]
 * is the flat array of so many fp32: the tensors in sequence without gaps, and a tail that lives on from step to step.
 * The unit's padded length must be at least that (the length of a LOCAL array), so the engine rounds it up. */
typedef struct {
    uint32_t tensor_count;
    const sluice_update *tensors;
    float *const *local[SLC_LOCAL_MAX]; /* [local_arrays][tensor_count]: where each tensor's part begins */
    const slc_compress_group *group;
    const slc_residue *workers; /* [group->count]; each has the bins of a room (compress_group.h) */
    void *packets;              /* compress writes them: group->stride bytes for each rank */
    const void *results;        /* apply reads them: as many */
} slc_onebit_unit;

/* The length of the flat array of parameters with `elements` elements in all: padded as an exchange over `ranks`. */
uint64_t slc_flat_elements(uint64_t elements, uint32_t ranks);

enum {
    SLC_PHASE_CHANGED = 1, /* phase(step + 1) differs from phase(step): the engine plans anew */
    SLC_RESET_ERRORS = 2   /* all residues (worker, server) are to be zeroed before the next step */
};

typedef struct {
    /* The optimizer as it is for averaged gradients. States and all per-parameter norms are declared here; in the place
     * of its `agreed` is the one below. */
    sluice_optimizer optimizer;
    const char *local_name[SLC_LOCAL_MAX]; /* of all phases: for checkpoints */

    /* The phases that a run goes through, in their order; `fuses` is the same in all. They are known at creation: the
     * engine makes room for each at commit. */
    uint32_t phase_count;
    slc_compressed_phase phases[SLC_PHASES_MAX];

    sluice_status (*commit)(void *context, uint32_t ranks, uint32_t count, const slc_compressed_parameter *parameters);
    slc_compressed_phase (*phase)(const void *context, uint64_t step);

    /* NULL, or called once a step and alike on every rank, for all trainable parameters that are not in a onebit unit:
     * after all updates of the step before, and before any update of this step. On the host it is not called if the
     * step is skipped. */
    sluice_status (*agreed)(void *context, uint64_t step, uint32_t count, const slc_agreed *parameters);

    /* Returns the mode of a step: AVERAGE in the warm-up; not LOCAL if exchange_now, with which the step must leave all
     * replicas equal. It may be called again for a step that was skipped. roles: the bits above for each parameter,
     * valid during the call; NULL: all are kept, in onebit units. */
    slc_step_mode (*begin_step)(void *context, uint64_t step, double learning_rate, bool exchange_now,
                                const uint8_t *roles);

    /* These three work on one unit. compress reads gradients, states, local arrays and residues, and writes packets and
     * residues. apply reads results. apply and local write values (`rounded` too), states and local arrays; `local` is
     * NULL if no phase has such steps. *bad, UINT32_MAX or lower before, becomes the lowest `parameter` of a tensor
     * that is not finite; else it is left alone. The packets of such a tensor say so to all ranks (compress.h), and
     * apply leaves it as it was, on every rank alike. */
    sluice_status (*compress)(void *context, const slc_onebit_unit *unit, uint32_t *bad);
    sluice_status (*apply)(void *context, const slc_onebit_unit *unit, uint32_t *bad);
    sluice_status (*local)(void *context, const slc_onebit_unit *unit, uint32_t *bad);
    /* `apply` after local steps leaves values apart by roundings from rank to rank; else they are equal to the bit. */
    bool exchange_rounds;

    /* Bit i: end_step(step) wants norms[i][p], the norm of state i of parameter p after the step, made from owned parts
     * by exact bins (norm.h), so that its bits depend on no strategy; 0 of a frozen parameter. norms[i] is NULL
     * elsewhere. updates[p]: how many updates parameter p has had, this step's included, `step` if it is frozen; NULL:
     * each has had `step`. Returns SLC_PHASE_CHANGED, SLC_RESET_ERRORS or both. */
    uint32_t (*wants_norms)(const void *context, uint64_t step);
    uint32_t (*end_step)(void *context, uint64_t step, const uint64_t *updates,
                         const double *const norms[SLUICE_OPTIMIZER_STATES_MAX]);
    /* Returns the first parameter that the last end_step, or the refresh before it, has waited for, because all steps
     * have left it out; UINT32_MAX: none. Compression divides by a variance that it no longer learns, so the compressed
     * phase does not begin before each parameter has a variance. */
    uint32_t (*waits_for)(const void *context);

    /* A checkpoint keeps these numbers in addition to states, local arrays and residues: numbers of the job (counters
     * are whole, below 2^53; `parameter` is UINT32_MAX) and numbers of each parameter. Each must come back with every
     * bit. The job's numbers are loaded first, because the last counted_progress_count numbers of a parameter follow
     * from the job's as long as no step has left anything out; until then they are not kept, and progress_load gets NAN
     * for them. progress_check says whether progress_load would take `values` after those of `job`, and changes
     * nothing. */
    uint32_t progress_count, parameter_progress_count, counted_progress_count;
    const char *progress_name[SLC_PROGRESS_MAX], *parameter_progress_name[SLC_PROGRESS_MAX];
    void (*progress_save)(const void *context, uint32_t parameter, double *values);
    sluice_status (*progress_check)(const void *context, const double *job, uint32_t parameter, const double *values);
    sluice_status (*progress_load)(void *context, uint32_t parameter, const double *values);

    void (*destroy)(void *context);
    void *context; /* of all these, and of optimizer */
} slc_compressed;

/* ---- For implementations ---- */

/* The settings of all compressed optimizers, as a configuration has them: 1-bit Adam and 0/1 Adam use adamw; 1-bit LAMB
 * uses lamb, and its compat ignores norm_min and norm_max. */
typedef struct {
    sluice_adamw adamw;
    sluice_lamb lamb;
    sluice_onebit onebit;
} slc_compressed_settings;

/* The job's step that an update belongs to. */
static inline uint64_t slc_job_step_of(const sluice_update *u)
{
    return u->job_step ? u->job_step : u->step;
}

/* Counts the updates of one call of update_many, from number `first` on, whose parameters have the same number. That of
 * parameter p lies p * stride bytes after `numbers`. */
uint32_t slc_updates_alike(const sluice_update *updates, uint32_t first, uint32_t count, const uint64_t *numbers,
                           size_t stride);

/* Returns true if x is a whole number from 0 on, small enough for a checkpoint to keep it with every bit. */
bool slc_is_counter(double x);
/* Reads a count of a parameter from a checkpoint. NAN stands for the job's count, because no step has left the
 * parameter out. Errors: ARGUMENT if the value is above the job's count or is no count. `name` is the optimizer's,
 * `what` the number's. */
sluice_status slc_read_own_count(const char *name, const char *what, uint32_t parameter, double value, uint64_t of_job,
                                 uint64_t *count);

/* ORDER unless the step of tensor i compresses; ARGUMENT unless its shape has its count. */
sluice_status slc_onebit_check(const char *name, const slc_onebit_unit *unit, uint32_t i, bool compresses);
/* Checks a fused unit as slc_onebit_check checks tensor i: all its tensors together, padded, must have the count of its
 * only shape. */
sluice_status slc_onebit_check_flat(const char *name, const slc_onebit_unit *unit, bool compresses);

/* The most tensors of a unit that are handed to kernels at a time. */
enum { SLC_ONEBIT_TOGETHER = 16 };

/* Inspects all scales of all shapes in the unit's packets, or in its results (slc_compress_look). Inspecting results
 * also tells the room of each shape what is to be done with the tensor, and zeroes the room's sums. */
sluice_status slc_onebit_look(sluice_stream *stream, const slc_onebit_unit *unit, bool results, uint32_t *bad);

/* Compresses each tensor of a unit by itself, and inspects the packets. input() returns what is to be compressed of
 * tensor i; it gets the optimizer's context. */
typedef slc_compress_input slc_onebit_input(const void *context, const slc_onebit_unit *unit, uint32_t i);
sluice_status slc_onebit_compress_each(sluice_stream *stream, const slc_onebit_unit *unit, slc_onebit_input *input,
                                       const void *context, uint32_t *bad);

/* The elements of tensor i among the results of its own shape. */
slc_compress_results slc_onebit_results(const slc_onebit_unit *unit, uint32_t i);
