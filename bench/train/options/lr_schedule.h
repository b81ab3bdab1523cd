/* The learning rate of each step: a pure function of the settings and of how far the run has come before the step, in
 * steps or in tokens, so that a resumed run goes on with the rates of one that was never interrupted. */
#pragma once

#include "bench/train/options/training_options.h"

typedef enum { SLC_LR_CONSTANT, SLC_LR_LINEAR, SLC_LR_COSINE, SLC_LR_INVERSE_SQRT, SLC_LR_WSD } slc_lr_kind;

/* The times stand on one clock, of steps or of tokens (--lr-over). */
typedef struct {
    slc_lr_kind kind;
    bool tokens;
    double stride;                            /* of a step on the clock: 1, or the tokens of all ranks */
    double peak, least;                       /* --lr, --lr-min */
    double warmup, horizon, decay, timescale; /* with their defaults in place; 0: the schedule has none */
} slc_lr_schedule;

/* Makes the schedule that the options ask for. tokens_per_step: of all ranks; 0: not known yet, then a schedule over
 * tokens is only checked as far as it can be. Errors: ARGUMENT for times that do not fit together, for options that the
 * schedule does not have. */
sluice_status slc_lr_schedule_make(const slc_training_options *options, uint64_t tokens_per_step, slc_lr_schedule *out);

/* Returns the rate of the step before which the clock stands at `before`: 0 for the first step of a run.
 *
 *   warm-up, before < W            peak * min(before + stride, W) / W
 *   then, t = before:
 *     constant                     peak
 *     linear                       least + (peak - least) * (1 - p), p = (t - W) / (H - W)
 *     cosine                       least + (peak - least) * (1 + cos(pi p)) / 2, the same p; Loshchilov & Hutter, arXiv
 *                                  1608.03983, without restarts
 *     inverse_sqrt                 max(least, peak / sqrt((t - W + S) / S)); Vaswani et al., arXiv 1706.03762; Zhai et
 *                                  al., arXiv 2106.04560
 *     wsd                          peak while t < H - D, then as cosine with p = (t - H + D) / D; Hu et al., arXiv
 *                                  2404.06395
 *
 * p is 1 from the horizon H on. After the warm-up these are the rates of transformers' schedules at their index t; in
 * the warm-up at index t + 1, so that the first step has a rate above 0. */
double slc_lr_schedule_rate(const slc_lr_schedule *schedule, double before);

/* ARGUMENT if the rate is 0 already before the last step, before which the clock stands at `last`: the steps there
 * would change nothing. */
sluice_status slc_lr_schedule_check_last(const slc_lr_schedule *schedule, double last);

/* Returns where the schedule comes to its end, with the default in place; 0: it has no end. */
uint64_t slc_lr_schedule_horizon(const slc_training_options *options);

/* For a run that only measures, in fewer steps than the schedule has: the constant rate, with no warm-up. */
void slc_lr_schedule_drop(slc_training_options *options);

/* Writes a line such as "0.001 after a warm-up over 10 steps, then cosine to 0.0001 at step 100". */
void slc_lr_schedule_words(const slc_lr_schedule *schedule, char *text, size_t bytes);
