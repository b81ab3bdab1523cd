/* 1-bit Adam (Tang et al., arXiv 2102.02888) as a compressed optimizer (compressed.h).
 *
 * Warm-up: AdamW on averaged gradients (sluice/optimizer.h), to the bit. At the end of one step, freeze_step or the one
 * that the criterion chooses (freeze.h), the variance v is frozen. From the next step on, for each tensor, with each
 * rank's own gradient g_r:
 *   m_r = b1 m + (1-b1) g_r;  m = exchange(m_r) (compress.h);  m = 0 if v = 0
 *   w -= lr wd w;  w -= lr / (1-b1^t) m / (sqrt(v) / sqrt(1-b2^f) + eps),  f: the step of the freeze
 * So native mode keeps Adam's bias corrections: the momentum's goes on, the variance's stays with the variance. A
 * tensor that is not exchanged compressed (another strategy, or one rank) does the same with the averaged gradient
 * instead of the exchange of m. compat does what DeepSpeed 0.16.4 executes: it has no corrections; step 1 discards its
 * gradient and changes nothing, and the variance cannot be frozen at its end; coordinates with v = 0 are masked only if
 * `mask` is set.
 *
 * States: exp_avg, exp_avg_sq. Phases: warm-up, compressed; every step of the compressed phase is an exchange. */
#pragma once

#include "lib/optim/compressed.h"

/* Fills `out`; everything runs on `stream`, which must outlive it. The caller ends it with out->destroy(out->context).
 * Errors: ARGUMENT, MEMORY. */
sluice_status slc_onebit_adam_create(const slc_compressed_settings *settings, sluice_stream *stream,
                                     slc_compressed *out);
