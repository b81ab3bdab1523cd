/* 0/1 Adam (Lu et al., arXiv 2202.06009) as a compressed optimizer (compressed.h).
 *
 * c1 = 1 - b1^t and c2 = 1 - b2^k are Adam's bias corrections; k counts the refreshes so far, because the variance v
 * has been updated that often and not t times. D = sqrt(v / c2) + eps. g is averaged, g_r is this rank's own.
 *
 * Phase 1. K is 1 at first and doubles after every var_update_scaler refreshes.
 *   t mod K = 0   a refresh: AdamW on averaged gradients, v too (SLC_STEP_AVERAGE)
 *   else          m = b1 m + (1-b1) ghat, where ghat = exchange(g_r), 0 if v = 0; v is left alone
 *                 w -= lr wd w;  w -= lr/c1 m / D                                       (SLC_STEP_EXCHANGE)
 * While K is 1 this is warm-up: every step is a refresh. After step var_freeze_step the variance is frozen, and the
 * errors, which belonged to gradients, are zeroed, because from then on they belong to moves.
 *
 * Phase 2. H is 1 at first and doubles after every local_step_scaler steps, up to local_step_clipper. An interval is
 * the steps after one exchange, up to and including the next; L is the sum of its learning rates so far.
 *   every step    m = b1 m + (1-b1) g_r, 0 if v = 0;  w and u both move by -lr/c1 m / D;  w -= lr wd w
 *   t mod H = 0   and whenever the engine says exchange_now (the same with the interval's moves so far; K, H and their
 *                 counters go on as if nothing had happened, L and u begin anew):
 *                 y = exchange(u D), with this step's move in u, 0 if v = 0 (the exchanged array is not masked);
 *                 m = -c1 y / L (0 if L is 0: learning rates of 0 left nothing to recover it from);
 *                 w = (product of 1 - lr wd) w0 + y / D, where w0 is w at the last exchange
 * w0 is the stored former w, not w - u, so all replicas are equal to the bit after an exchange. Decay stays out of u:
 * in the original it is exchanged with the moves, gets into the m recovered from them and is applied again with that,
 * up to 1 / (1-b1) times. Elements with v = 0 only decay.
 * Local arrays: u (accumulator) and w0 (kept), only in phases with H > 1. u is 0 after an exchange; the content of w0
 * matters only inside an interval.
 *
 * Units that are not onebit, and a single rank: averaged gradients in every step and AdamW's update, but v changes at
 * refreshes only and is then frozen; m is 0 if v = 0 from the first step on that is no refresh.
 *
 * compat does what DeepSpeed 0.16.4 executes. Step 1 changes nothing; there are no corrections (c1 = c2 = 1); the last
 * step of phase 1 is var_freeze_step + 1; elements with v = 0 are masked, in ghat and y only, if `mask` is set; u and
 * the exchanged array contain the decay, w = (w - u) + y / D without w0, so replicas differ by roundings. On a single
 * rank, m moves only at refreshes in phase 1; in phase 2 a step is a local one and nothing is recovered from moves (the
 * original, which skips the compression, there replaces m by its mean over the interval, with decay).
 *
 * A local step leaves an element that would become infinite or NaN as it was, and reports its tensor. A step that
 * fails or is skipped leaves counters, L and u as they were. */
#pragma once

#include "lib/optim/compressed.h"

/* Fills `out`; everything runs on `stream`, which must outlive it. The caller ends it with out->destroy(out->context).
 * Errors: ARGUMENT, MEMORY. */
sluice_status slc_zero_one_adam_create(const slc_compressed_settings *settings, sluice_stream *stream,
                                       slc_compressed *out);
