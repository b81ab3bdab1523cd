/* The learning rate of each step: a pure function of the settings and of how far the run has come before and after the
 * step, in steps or in tokens, so that a resumed run goes on with the rates of one that was never interrupted. */
#pragma once

#include <stdbool.h>

typedef enum {
    SLC_RECIPE_CONSTANT,
    SLC_RECIPE_LINEAR,
    SLC_RECIPE_COSINE,
    SLC_RECIPE_INVERSE_SQRT,
    SLC_RECIPE_WSD
} slc_recipe_rate_kind;

/* The times stand on one clock, of steps or of tokens. */
typedef struct {
    slc_recipe_rate_kind kind;
    double peak, least;
    double warmup;                    /* 0: none */
    double horizon, decay, timescale; /* 0: the kind has none */
    double again_from, again;         /* a second warm-up over `again` on the clock; 0: none */
} slc_recipe_rate;

/* Returns true if a schedule of this kind comes to an end, at its horizon. */
bool slc_recipe_rate_ends(slc_recipe_rate_kind kind);

/* Puts defaults in the place of times that are 0 and that the kind has: decay, a tenth of the horizon, at least
 * `stride` and at most what the warm-up leaves; timescale, the warm-up, or 10,000 steps of `stride` without one. */
void slc_recipe_rate_complete(slc_recipe_rate *rate, double stride);

/* Returns the rate of a step. The clock stands at `before` before it (0 for the first step of a run) and at `after`
 * after it. W is warmup, H horizon, S timescale, D decay, A again_from, V again.
 *
 *   warm-up, before < W            peak * min(after, W) / W
 *   then, t = before:
 *     constant                     peak
 *     linear                       least + (peak - least) * (1 - p), p = (t - W) / (H - W)
 *     cosine                       least + (peak - least) * (1 + cos(pi p)) / 2, the same p; Loshchilov & Hutter, arXiv
 *                                  1608.03983, without restarts
 *     inverse_sqrt                 max(least, peak / sqrt((t - W + S) / S)); Vaswani et al., arXiv 1706.03762; Zhai et
 *                                  al., arXiv 2106.04560
 *     wsd                          peak while t < H - D, then as cosine with p = (t - H + D) / D; Hu et al., arXiv
 *                                  2404.06395
 *   second warm-up, A <= before < A + V: that times min(after - A, V) / V
 *
 * p is 1 from the horizon H on. After the warm-up these are the rates of transformers' schedules at their index t; in
 * the warm-up at index t + 1, so that the first step has a rate above 0. Every processor gets the same bits. */
double slc_recipe_rate_at(const slc_recipe_rate *rate, double before, double after);
