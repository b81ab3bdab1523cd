/* An optimizer is a struct: name, state, and the update of a range of elements. A binary can bring its own. */
#ifndef SLUICE_OPTIMIZER_H
#define SLUICE_OPTIMIZER_H

#include <sluice/dtype.h>
#include <sluice/init.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_OPTIMIZER_STATES_MAX 4 /* arrays of state */
#define SLUICE_OPTIMIZER_NORMS_MAX 3  /* norms over whole parameters, maxima among them */

typedef struct sluice_stream sluice_stream; /* sluice/runtime.h */

/* The results of a step that the device computes itself and keeps in its memory, because the host has gone on by the
 * time that kernels read them. */
typedef struct {
    double gradient_factor; /* holds in the place of sluice_update's */
    uint32_t skip;          /* not 0: the step is skipped, and kernels change nothing */
} sluice_step_words;

/* A contiguous range of one parameter, made by the runtime, which may know more fields at its end than the program. All
 * arrays are `count` long, fp32 unless said otherwise, and aligned as 16 of their elements; ranges begin at multiples
 * of 16 elements of the parameter. All are memory of the runtime's device, which the host cannot read if that is a
 * GPU, and are valid during the call alone, or for work that the call has put on `stream`. */
typedef struct {
    float *value;                /* to be read and written; of a parameter in bf16, its fp32 master */
    const void *gradient;        /* reduced and scaled, but not yet clipped; sums of NCCL's are not scaled either */
    sluice_dtype gradient_dtype; /* of `gradient` */
    void *rounded;               /* for a parameter in bf16: the new values rounded to bf16 are written here too; else
                                    NULL */
    float *state[SLUICE_OPTIMIZER_STATES_MAX]; /* to be read and written */
    size_t count;
    uint64_t step; /* of the parameter's updates, from 1: steps that left its layer out do not count */
    double learning_rate;
    double gradient_factor; /* multiply each gradient by this first: clipping, and the scale that it lacks; else 1 */
    bool no_decay;          /* as sluice_param_desc says */
    const double *norms;    /* norm_count and maximum_count of them, over the whole parameter, in the device's memory;
                               NULL while they are measured */
    uint32_t parameter;     /* its number in registration order */
    sluice_stream *stream;  /* where an optimizer with `on_stream` queues its kernels */
    const sluice_step_words *words; /* for kernels to read when they run; NULL: gradient_factor holds, and nothing is
                                       skipped. NULL on the host */
    uint64_t job_step;              /* of the run, from 1: the same for all parameters. 0: as `step` */
} sluice_update;

/* The sums of one range for measure_many: what `measure` gets as an array. */
typedef struct {
    int64_t *of[SLUICE_OPTIMIZER_NORMS_MAX];
} sluice_optimizer_sums;

/* An optimizer: the bundled ones are such structs too. */
typedef struct {
    size_t struct_size;   /* of this struct; SLUICE_INIT sets it */
    const char *name;     /* for messages and checkpoints, which only an optimizer of the same name loads */
    uint32_t state_count; /* of `state_name` */
    const char *state_name[SLUICE_OPTIMIZER_STATES_MAX]; /* each one fp32 per element, zero at first */
    /* Updates a range, elementwise: the result for an element must not depend on the range it came in. It is called
     * from the communication thread or the compute threads, one call at a time; see `concurrent`. It must not call the
     * runtime. A status other than SLUICE_OK makes the runtime fail with it, and a number that is no status with
     * ARGUMENT. */
    sluice_status (*update)(const sluice_update *update, void *context);
    void *context; /* the binary's own, given to each function */
    /* The optimizer reads gradients of either type and writes `rounded`. false: it gets only fp32 gradients, and
     * `rounded` is NULL; the runtime widens before the update and rounds after it, at the cost of a pass each. */
    bool mixed_precision;
    /* `update` may be called by several threads at once, for ranges apart: then plans may put updates on the compute
     * threads, next to those that the communication thread runs. */
    bool concurrent;

    /* The number of norms over whole parameters that the optimizer's step depends on (LAMB), else 0. With norms no
     * parameter is updated before every gradient is reduced and the ranks have added up the norms once; clipping is
     * refused, and mixed_precision must be true. `measure` gets each range of a parameter once, on one rank, with all
     * fields but `norms` as `update` will get them. It changes nothing, and adds the squares of norm i to sums[i],
     * integers that hold a sum exactly in the form of lib/kernels/norm/norm.h: this is for bundled optimizers. Threads
     * and statuses are as those of `update`. */
    uint32_t norm_count;
    /* The number of maxima over whole parameters that the optimizer's step depends on too, of numbers that are not
     * below 0. sums[norm_count + i][0] holds the bits of a double, which order such numbers; `measure` raises it to the
     * bits of the largest number that it finds. `norms` holds the maxima after the norms. With norm_count 0 there are
     * none. */
    uint32_t maximum_count;
    /* NULL if there are no norms and no maxima. */
    sluice_status (*measure)(const sluice_update *update, int64_t *const sums[SLUICE_OPTIMIZER_NORMS_MAX],
                             void *context);
    /* NULL, or called once a step for each measured parameter, in registration order and alike on every rank, with
     * `step` and `norms` as update gets them: after all updates of the step before and before this one's. Not if the
     * step is skipped. */
    void (*agreed)(uint32_t parameter, uint64_t step, const double *norms, void *context);
    /* `update` and `measure` do all their work by kernels on the update's stream: they return before it is done, and
     * give the addresses that they get (`sums` among them) to those kernels alone. false: the work is done when the
     * call returns; only the host device takes such an optimizer. A GPU takes an optimizer with on_stream only if it
     * has mixed_precision too and no `agreed`. */
    bool on_stream;
    /* NULL, or `update` for `count` ranges at once, of one parameter or several, none of which overlap. All have the
     * same step, learning_rate, gradient_factor, words and stream. On a GPU the runtime then calls it in the place of
     * `update`, with a unit's ranges, so that one kernel can take them all. */
    sluice_status (*update_many)(const sluice_update *updates, size_t count, void *context);
    /* NULL, or `measure` for `count` ranges at once, under the conditions of update_many. The sums of updates[i] go to
     * sums[i]. */
    sluice_status (*measure_many)(const sluice_update *updates, size_t count, const sluice_optimizer_sums *sums,
                                  void *context);
} sluice_optimizer;

/* The most ranges that update_many and measure_many get in one call. */
#define SLUICE_OPTIMIZER_RANGES_MAX 96

/* The settings that follow lie inside sluice_config and cannot grow: a further one becomes a field of the config. */

/* AdamW, Loshchilov & Hutter, arXiv 1711.05101, as PyTorch's torch.optim.AdamW computes it:
 * m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= lr wd w; w -= lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps).
 * Betas are in [0, 1), epsilon is above 0, weight_decay not below 0. */
typedef struct {
    double beta1, beta2, epsilon, weight_decay;
} sluice_adamw;

/* LAMB, You et al., arXiv 1904.00962, algorithm 2:
 * m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; u = m/(1-b1^t) / (sqrt(v)/sqrt(1-b2^t) + eps) + wd w; w -= lr trust u,
 * where trust is the parameter's ||w|| / ||u||, 1 if either is 0, with ||w|| clamped to norm_min..norm_max. As in
 * the authors' code, a parameter without decay has trust 1. */
typedef struct {
    double beta1, beta2, epsilon, weight_decay;
    double norm_min, norm_max;
} sluice_lamb;

/* SGD with momentum, Sutskever et al., ICML 2013, as PyTorch's torch.optim.SGD computes it:
 * g += wd w; m = mu m + (1-d) g, in the first step m = g; w -= lr (g + mu m) with nesterov, else w -= lr m. Without
 * momentum w -= lr g, and there is no m: no state is kept. Momentum and weight_decay are not below 0; nesterov needs a
 * momentum and no dampening. */
typedef struct {
    double momentum, dampening, weight_decay;
    bool nesterov;
} sluice_sgd;

/* The compressed optimizers: "onebit_adam" (1-bit Adam, Tang et al., arXiv 2102.02888), "onebit_lamb" (1-bit LAMB, Li
 * et al., arXiv 2104.06069) and "zero_one_adam" (0/1 Adam, Lu et al., arXiv 2202.06009). After a warm-up on averaged
 * gradients there is a phase in which layers under the strategy onebit exchange one bit an element instead; other
 * layers go on with averaged gradients. Betas, epsilon and weight decay are those of sluice_adamw, of sluice_lamb for
 * 1-bit LAMB. */
typedef struct {
    /* 1-bit Adam, 1-bit LAMB: the variance is frozen at the end of step freeze_step; 0: when its norm has changed by at
     * most the share freeze_change over 1 / (1 - beta2) steps. 1 is refused for 1-bit LAMB with compat, whose first
     * step has no gradient: its variance would stay 0. */
    uint64_t freeze_step;
    double freeze_change; /* in (0, 1) */
    bool compat;      /* to the letter as DeepSpeed 0.16.4 executes it: no bias correction, the first step's gradient
                         discarded, LAMB in one fused buffer */
    bool compat_mask; /* with compat: keep the momentum at 0 if the variance is 0, which without compat it always
                         is */
    /* 1-bit LAMB: coefficient_beta is the decay of the average of the trust ratio, which is clamped to
     * trust_min..trust_max. In the compressed phase this average is multiplied by a factor from factor_min to
     * factor_max, which changes by at most the share factor_threshold a step. */
    double coefficient_beta, trust_min, trust_max, factor_min, factor_max, factor_threshold;
    /* 0/1 Adam: the variance is frozen after var_freeze_step; until then the interval between its refreshes doubles
     * every var_update_scaler refreshes; then the interval between exchanges doubles every local_step_scaler steps, up
     * to local_step_clipper. */
    uint64_t var_freeze_step, var_update_scaler, local_step_scaler, local_step_clipper;
} sluice_onebit;

/* ---- What is kept, by name ----
 *
 * The columns: an optimizer of sluice_config.optimizer_name; whether onebit.compat is set (all: either way); a kind; a
 * name; the shape; the meaning, with the formulas' letters of docs/compression.md. Kinds:
 *   state      an array of every trained parameter, under any strategy, fp32, 0 at first: sluice_param_state_read,
 *              _write; `count` elements, the parameter's. The values themselves are sluice_param_read's
 *   own        the same calls, but each rank has an array of its own, and only while the parameter's unit is onebit in
 *              the plan that runs, so from the compressed phase on: sluice_param_state_count is 0 elsewhere
 *   job        a number of the job: sluice_runtime_progress_read, _write with `param` NULL
 *   parameter  a number of each trained parameter: the same with that parameter
 * N ranks; `padded` is count rounded up to a multiple of N lcm(N, 8), and `share` is padded / N. 1-bit LAMB in compat
 * exchanges all tensors as one, in registration order: there padded is of all elements together, error_worker and flat
 * of a parameter are its count elements, those of the last one go on to the end of the padding, and error_server is the
 * first one's alone (0 elements of the others). A name that is not there is ARGUMENT, with those that are.
 *
 *   adamw          all     state      exp_avg           count   m
 *   adamw          all     state      exp_avg_sq        count   v
 *
 *   lamb           all     state      exp_avg           count   m
 *   lamb           all     state      exp_avg_sq        count   v
 *
 *   sgd            all     state      momentum_buffer   count   m; not if the momentum is 0
 *
 *   onebit_adam    all     state      exp_avg           count   m
 *   onebit_adam    all     state      exp_avg_sq        count   v, frozen after the warm-up
 *   onebit_adam    all     own        error_worker      padded  e_w: what rounding to one bit left
 *   onebit_adam    all     own        error_server      share   e_s: the same of the averages that this rank makes
 *   onebit_adam    all     job        frozen_at         1       last step of the warm-up; 0: not frozen yet
 *   onebit_adam    all     job        norm_step         1       step of the last look at the norm of v; 0: none
 *   onebit_adam    all     job        norm              1       that norm, corrected for bias but with compat
 *   onebit_adam    all     parameter  frozen_updates    1       updates that it had had at the freeze
 *
 *   onebit_lamb    all     state      exp_avg           count   m
 *   onebit_lamb    all     state      exp_avg_sq        count   v, frozen after the warm-up
 *   onebit_lamb    all     state      exp_avg_sq_fresh  count   f; 0 until the first step of the compressed phase
 *   onebit_lamb    all     own        error_worker      padded  e_w
 *   onebit_lamb    all     own        error_server      share   e_s
 *   onebit_lamb    compat  own        flat              count   what was exchanged last; the padding's comes back
 *   onebit_lamb    all     job        frozen_at         1       last step of the warm-up; 0: not frozen yet
 *   onebit_lamb    all     job        norm_step         1       step of the last look at the norm of v; 0: none
 *   onebit_lamb    all     job        norm              1       that norm, corrected for bias but with compat
 *   onebit_lamb    all     parameter  coefficient       1       c: running average of the trust ratio, not corrected
 *   onebit_lamb    all     parameter  ratios            1       k: how many ratios are in it
 *   onebit_lamb    all     parameter  last_factor       1       r of the last step; 1 at first
 *   onebit_lamb    all     parameter  scaling           1       a: set at the freeze; 1 before
 *   onebit_lamb    all     parameter  frozen_updates    1       updates that it had had at the freeze
 *
 *   zero_one_adam  all     state      exp_avg           count   m
 *   zero_one_adam  all     state      exp_avg_sq        count   v
 *   zero_one_adam  all     own        error_worker      padded  e_w
 *   zero_one_adam  all     own        error_server      share   e_s
 *   zero_one_adam  all     own        accumulator       count   u: moves since the last exchange; while H > 1
 *   zero_one_adam  native  own        kept              count   w0: values at the last exchange, if interval_steps > 0
 *   zero_one_adam  all     job        refresh_interval  1       K: steps from refresh to refresh of v
 *   zero_one_adam  all     job        refresh_counter   1       refreshes since K has doubled
 *   zero_one_adam  all     job        refreshes         1       k: refreshes so far
 *   zero_one_adam  all     job        frozen_at         1       last step before v is frozen; 0: not frozen yet
 *   zero_one_adam  all     job        local_interval    1       H: steps from exchange to exchange
 *   zero_one_adam  all     job        local_counter     1       steps since H has doubled
 *   zero_one_adam  all     job        interval_steps    1       steps since the last exchange
 *   zero_one_adam  all     job        rates             1       sum of their learning rates
 *   zero_one_adam  all     job        decayed           1       product of 1 - lr wd over them
 *   zero_one_adam  all     parameter  refreshes         1       k of the parameter: refreshes that have kept its layer
 *
 * frozen_updates and a parameter's refreshes are the job's frozen_at and refreshes unless steps have left layers out.
 * They become that when the job's number is written, so a program that writes both writes the job's first. */

#ifdef __cplusplus
}
#endif
#endif
