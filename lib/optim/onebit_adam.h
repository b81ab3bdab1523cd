/* 1-bit Adam (Tang et al., arXiv 2102.02888) as functions that the engine calls around a compressed exchange.
 *
 * Warm-up: AdamW on averaged gradients (sluice/optimizer.h). At the end of one step, freeze_step or the one that the
 * criterion chooses, the variance v is frozen. From the next step on, per tensor, with each rank's own gradient g_r:
 *   m_r = b1 m + (1-b1) g_r;  m = exchange(m_r) (compress.h);  m = 0 where v = 0
 *   w -= lr wd w;  w -= lr / (1-b1^t) m / (sqrt(v) / sqrt(1-b2^f) + eps),  f: the step of the freeze
 * So native mode keeps Adam's bias corrections: the momentum's goes on, the variance's stays with the variance. A
 * tensor that is not exchanged compressed (another strategy, or one rank) does the same with the averaged gradient in
 * place of m's exchange. compat: as DeepSpeed 0.16.4 executes it: no correction anywhere; step 1 discards its gradient
 * and changes nothing; it cannot be frozen at the end of step 1; coordinates with v = 0 are masked only if `mask` says
 * so.
 *
 * States: exp_avg, exp_avg_sq. With n ranks and N the padded length of a tensor, the compressed phase takes beside them
 * 4 N bytes for the worker's residue and 4 N / n for the server's, with their scales (compress.h), and in flight N / 8
 * bytes of packets and slc_comm_exchange_bytes of results.
 *
 * All functions: on the thread that updates, one at a time. A step's phase depends on its number and on the freeze
 * alone, so updates of a step may still run when end_step of it has been called. */
#ifndef SLC_OPTIM_ONEBIT_ADAM_H
#define SLC_OPTIM_ONEBIT_ADAM_H

#include "lib/kernels/compress/compress.h"

#include <sluice/optimizer.h>

typedef struct {
    sluice_adamw adam;
    uint64_t freeze_step; /* 0: chosen by freeze_change */
    double freeze_change; /* freeze when ||v||, bias corrected, has changed by at most this share over 1 / (1 - beta2)
                             steps (the paper's ratio of .96 is .04); in (0, 1) */
    bool compat, mask;
} slc_onebit_adam_settings;

/* What a checkpoint keeps beside the states. */
typedef struct {
    uint64_t frozen_at; /* the last step of the warm-up; 0: not frozen */
    uint64_t norm_step; /* the criterion's last look at ||v||; 0: none */
    double norm;
} slc_onebit_progress;

typedef enum {
    SLC_ONEBIT_DISCARD, /* compat, step 1 */
    SLC_ONEBIT_WARM_UP, /* averaged gradients, `update` */
    SLC_ONEBIT_FROZEN   /* own gradients, `compress`, exchange, `apply`; or averaged ones and `update` */
} slc_onebit_phase;

/* Fills `out`, whose update is that of the step's phase on averaged gradients. `stream` is where everything runs and
 * must outlive it; the caller ends it with slc_onebit_adam_destroy. Errors: ARGUMENT, MEMORY. */
sluice_status slc_onebit_adam_create(const slc_onebit_adam_settings *settings, slc_stream *stream,
                                     sluice_optimizer *out);
void slc_onebit_adam_destroy(sluice_optimizer *optimizer);

slc_onebit_phase slc_onebit_adam_phase(const sluice_optimizer *optimizer, uint64_t step);

/* Once a step, after its updates of the variance are known to happen. variance_norm: ||v|| over all parameters, the
 * same on every rank; only looked at where wants_norm says so. True if the variance is frozen from here on. */
bool slc_onebit_adam_wants_norm(const sluice_optimizer *optimizer, uint64_t step);
bool slc_onebit_adam_end_step(sluice_optimizer *optimizer, uint64_t step, double variance_norm);

/* To be read for, and written from, a checkpoint. */
slc_onebit_progress *slc_onebit_adam_progress(const sluice_optimizer *optimizer);

/* Of a whole tensor: update->gradient is this rank's own, scaled as if averaged over one rank, update->count the
 * shape's. The packets go to slc_exchange_op. Errors: ORDER (not frozen at that step), kernel's. */
sluice_status slc_onebit_adam_compress(const sluice_optimizer *optimizer, const sluice_update *update,
                                       const slc_compress_shape *shape, const slc_residue *worker, void *packets);

/* Elements first..first+count-1 of the tensor from the exchange's results; arrays of `update` are of the whole tensor,
 * its gradient is not read. *finite = false if the exchange failed (compress.h). */
sluice_status slc_onebit_adam_apply(const sluice_optimizer *optimizer, const sluice_update *update,
                                    const slc_compress_shape *shape, const void *results, uint64_t first,
                                    uint64_t count, bool *finite);

#endif
