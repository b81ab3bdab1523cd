/* 1-bit LAMB (Li et al., arXiv 2104.06069) as a compressed optimizer (compressed.h).
 *
 * Warm-up: LAMB on averaged gradients (sluice/optimizer.h), to the bit. Each parameter with decay keeps a running
 * average c of its trust ratio, clamped to trust_min..trust_max: c = cb c + (1-cb) ratio, in steps in which the ratio
 * is not 1. At the end of one step (freeze.h) the variance v is frozen, and each tensor's momentum gets a scale a =
 * mean of all rms / its rms, so that one scale may fit all; a tensor without any momentum is left out of the mean and
 * has a = 1. From the next step on, for each tensor, with each rank's own gradient g_r and the fresh variance f, v at
 * first:
 *   m_r = a (b1 m_last + (1-b1) g_r);  m = exchange(m_r) / a (compress.h);  m = 0 if v = 0
 *   g = (m - b1 m_last) / (1-b1);  f = b2 f + (1-b2) g^2
 *   d = sqrt(v)/sqrt(1-b2^F) + eps;  p = m/(1-b1^t) / d;  u = p + wd w,  F: the step of the freeze
 *   r = the largest d / (sqrt(f)/sqrt(1-b2^t) + eps) of elements that are not masked
 *   with decay: s = min(1, ||p|| / ||u||), r = r s + 1 - s
 *   r clamped to factor_min..factor_max, then to (1 -+ factor_threshold) of the last r (1 at first)
 *   w -= lr c r u,  c divided by 1 - cb^k of the k ratios that are in it; 1 if there were none
 * As in LAMB, a parameter without decay has c = r = 1. A tensor that is not exchanged compressed does the same with the
 * averaged gradient: m = b1 m_last + (1-b1) g.
 *
 * compat does what DeepSpeed 0.16.4 executes. It has no bias corrections, not even of c: if every ratio was 1 the
 * parameter stands still. Step 1 discards its gradient and cannot be the last of the warm-up. The ratio is clamped in
 * the warm-up's step too, and that of parameters without decay is not 1. Elements are masked only if `mask` is set, and
 * masked elements count for r. All tensors are exchanged as one flat array (compressed.h, `fuses`), whose padding is
 * fed by its own previous output. If the original divides by a rms of 0, a is 1 as above. A freeze_step of 1 is
 * refused: the original's momentum and variances would stay 0.
 *
 * States: exp_avg, exp_avg_sq, exp_avg_sq_fresh. Phases: warm-up, compressed (compat: both fuse, and the second has
 * one local array); every step of the compressed phase is an exchange. */
#pragma once

#include "lib/optim/compressed.h"

/* Creates 1-bit LAMB of its settings, with the errors and the ownership of slc_onebit_adam_create. */
sluice_status slc_onebit_lamb_create(const slc_compressed_settings *settings, sluice_stream *stream,
                                     slc_compressed *out);
