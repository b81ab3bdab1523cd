/* The numbers that 1-bit LAMB (Li et al., arXiv 2104.06069; DeepSpeed 0.16.4's onebit/lamb.py) keeps of each parameter
 * and brings forward in each step from three norms:
 *   average   c = clamp(trust, trust.least, trust.most), where trust is slc_lamb_trust's, before the clamp with
 *             `clamps` unset; unless trust is 1: coefficient = cb coefficient + (1-cb) c, and ratios grows by 1
 *   factor    from ||p||, ||u|| and the largest ratio r of frozen_lamb.h: with decay s = min(1, ||p|| / ||u||) and
 *             r = r s + 1 - s; r clamped to least..most, then to (1 -+ threshold) of last_factor, which it becomes
 * fmax and fmin take a number before NaN. The bits are those of the host on a GPU, too. */
#pragma once

#include "lib/kernels/lamb/frozen_lamb.h"
#include "lib/kernels/lamb/lamb.h"

/* Kept in memory of the host that a GPU reads and writes in place. */
typedef struct {
    double coefficient, ratios; /* the running average of trust ratios, and how many are in it */
    double last_factor, scaling;
    double settled; /* the coefficient as the compressed phase uses it; the host's */
} slc_lamb_numbers;

typedef struct {
    slc_lamb_bounds trust;
    bool clamps; /* the ratio that is averaged counts as 1 only after the clamp */
    double beta; /* cb */
    double least, most, threshold;
} slc_lamb_rules;

/* A parameter. In a step that its words skip (NULL: never) nothing changes. */
typedef struct {
    slc_lamb_numbers *numbers;
    const double *norms;       /* ||w||, ||u||; or ||p||, ||u||, r; NULL: `sums` has the latter */
    slc_frozen_lamb_sums sums; /* in memory of the stream's device */
    double *product;           /* of `factor`: receives settled * last_factor; may be if `norms` is */
    const sluice_step_words *words;
    bool decays, trusts_one; /* the latter: its step is Adam's, and no number changes */
} slc_lamb_parameter;

sluice_status slc_lamb_average(sluice_stream *stream, const slc_lamb_rules *rules, uint32_t count,
                               const slc_lamb_parameter *parameters);
sluice_status slc_lamb_factor(sluice_stream *stream, const slc_lamb_rules *rules, uint32_t count,
                              const slc_lamb_parameter *parameters);

/* ---- Forms ---- */

SLC_DEVICE_DECLARE(slc_lamb_average);
SLC_DEVICE_DECLARE(slc_lamb_factor);
