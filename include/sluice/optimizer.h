/* An optimizer is a struct: name, state, and the update of a range of elements. A binary can bring its own. */
#ifndef SLUICE_OPTIMIZER_H
#define SLUICE_OPTIMIZER_H

#include <sluice/dtype.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_OPTIMIZER_STATES_MAX 4
#define SLUICE_OPTIMIZER_NORMS_MAX 3 /* maxima among them */

/* A contiguous range of one parameter. All arrays are `count` long, fp32 unless said otherwise, and aligned as 16 of
 * their elements; ranges begin at multiples of 16 elements of the parameter. */
typedef struct {
    float *value;         /* of a parameter in bf16: its fp32 master */
    const void *gradient; /* reduced and scaled; not yet clipped */
    sluice_dtype gradient_dtype;
    void *rounded; /* of a parameter in bf16: to be written too, the new values rounded to bf16; else NULL */
    float *state[SLUICE_OPTIMIZER_STATES_MAX];
    size_t count;
    uint64_t step; /* from 1 */
    double learning_rate;
    double gradient_factor; /* multiply each gradient by this first (clipping); 1 without */
    bool no_decay;
    const double
        *norms; /* norm_count and maximum_count of them, over the whole parameter; NULL where they are measured */
    uint32_t parameter; /* its number in registration order */
} sluice_update;

typedef struct {
    const char *name;
    uint32_t state_count;
    const char *state_name[SLUICE_OPTIMIZER_STATES_MAX]; /* each one fp32 per element, zero at first */
    /* Elementwise: the result for an element must not depend on the range it came in. Called from the communication
     * thread or the compute thread, one call at a time; see `concurrent`. */
    sluice_status (*update)(const sluice_update *update, void *context);
    void *context;
    /* It reads gradients of either type and writes `rounded`. false: it only ever gets fp32 gradients and `rounded`
     * NULL; the runtime widens before the update and rounds behind it, at the cost of a pass each. */
    bool mixed_precision;
    /* `update` may be called by several threads at once, for ranges apart: then plans may put updates on the compute
     * threads, beside those that the communication thread runs. */
    bool concurrent;

    /* Of an optimizer whose step depends on norms over whole parameters (LAMB): how many, else 0. Then no parameter is
     * updated before every gradient is reduced and ranks have added up the norms once; clipping is not to be had, and
     * mixed_precision must be true. `measure` gets each range of a parameter once, on one rank, with everything as
     * `update` will get it but norms, changes nothing and adds the squares of norm i to sums[i], integers that hold a
     * sum exactly in the form of lib/kernels/norm/norm.h: for bundled optimizers. */
    uint32_t norm_count;
    /* And maxima, over whole parameters, of numbers that are not below 0: sums[norm_count + i][0] becomes the larger of
     * what it is and the number's bits as a double, which order such numbers. `norms` holds them behind the norms. With
     * norm_count 0 there are none. */
    uint32_t maximum_count;
    sluice_status (*measure)(const sluice_update *update, int64_t *const sums[SLUICE_OPTIMIZER_NORMS_MAX],
                             void *context);
    /* NULL, or called once a step for each measured parameter, in registration order and alike on every rank, with
     * `norms` as update gets them: behind all updates of the step before and ahead of this one's. Not where the step is
     * skipped. */
    void (*agreed)(uint32_t parameter, uint64_t step, const double *norms, void *context);
} sluice_optimizer;

/* AdamW, Loshchilov & Hutter, arXiv 1711.05101, as PyTorch's torch.optim.AdamW computes it:
 * m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= lr wd w; w -= lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps). */
typedef struct {
    double beta1, beta2, epsilon, weight_decay;
} sluice_adamw;

/* LAMB, You et al., arXiv 1904.00962, algorithm 2:
 * m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; u = m/(1-b1^t) / (sqrt(v)/sqrt(1-b2^t) + eps) + wd w; w -= lr trust u,
 * where trust is the parameter's ||w|| / ||u||, 1 where either is 0, with ||w|| clamped to norm_min..norm_max. As in
 * the authors' code, a parameter without decay has trust 1. */
typedef struct {
    double beta1, beta2, epsilon, weight_decay;
    double norm_min, norm_max;
} sluice_lamb;

/* The compressed optimizers: "onebit_adam" (1-bit Adam, Tang et al., arXiv 2102.02888), "onebit_lamb" (1-bit LAMB, Li
 * et al., arXiv 2104.06069) and "zero_one_adam" (0/1 Adam, Lu et al., arXiv 2202.06009). A warm-up on averaged
 * gradients, then a phase in which layers under the strategy onebit exchange one bit an element instead; other layers
 * go on with averaged gradients. Betas, epsilon and weight decay are those of sluice_adamw, of sluice_lamb for 1-bit
 * LAMB. */
typedef struct {
    /* 1-bit Adam, 1-bit LAMB: the variance is frozen at the end of step freeze_step; 0: when its norm has changed by at
     * most the share freeze_change over 1 / (1 - beta2) steps. */
    uint64_t freeze_step;
    double freeze_change; /* in (0, 1) */
    bool compat;      /* to the letter as DeepSpeed 0.16.4 executes it: no bias correction, the first step's gradient
                         discarded, LAMB in one fused buffer */
    bool compat_mask; /* with compat: keep the momentum at 0 where the variance is 0, which without compat it always
                         is */
    /* 1-bit LAMB: decay of the average of the trust ratio, which is clamped to trust_min..trust_max; bounds of the
     * factor on it in the compressed phase, and by which share that changes a step at most. */
    double coefficient_beta, trust_min, trust_max, factor_min, factor_max, factor_threshold;
    /* 0/1 Adam: the variance is frozen after var_freeze_step; until then the interval between its refreshes doubles
     * every var_update_scaler refreshes; then the interval between exchanges doubles every local_step_scaler steps, up
     * to local_step_clipper. */
    uint64_t var_freeze_step, var_update_scaler, local_step_scaler, local_step_clipper;
} sluice_onebit;

#ifdef __cplusplus
}
#endif
#endif
