/* Every time is a number on one clock, so steps and tokens need no code of their own.
 * bench/train/options/lr_schedule_test.c covers this file. */
#include "lib/recipe/rate.h"

#include "lib/base/numbers/equal_math.h"

#include <math.h>

static const double PI = 3.14159265358979323846, TIMESCALE_STEPS = 10000; /* of transformers, without a warm-up */

bool slc_recipe_rate_ends(slc_recipe_rate_kind kind)
{
    return kind == SLC_RECIPE_LINEAR || kind == SLC_RECIPE_COSINE || kind == SLC_RECIPE_WSD;
}

void slc_recipe_rate_complete(slc_recipe_rate *r, double stride)
{
    if (r->kind == SLC_RECIPE_WSD && r->decay <= 0) {
        const double tenth = fmax(floor(r->horizon / 10), stride), left = r->horizon - r->warmup;
        r->decay = left > 0 ? fmin(tenth, left) : tenth;
    }
    if (r->kind == SLC_RECIPE_INVERSE_SQRT && r->timescale <= 0)
        r->timescale = r->warmup > 0 ? r->warmup : TIMESCALE_STEPS * stride;
}

static double fall(const slc_recipe_rate *r, double share)
{
    return r->least + (r->peak - r->least) * share;
}

static double half_wave(double progress)
{
    return 0.5 * (1 + slc_cosine(PI * fmin(progress, 1)));
}

static double by_kind(const slc_recipe_rate *r, double before)
{
    const double done = before - r->warmup, span = r->horizon - r->warmup, decays_at = r->horizon - r->decay;
    switch (r->kind) {
    case SLC_RECIPE_LINEAR: return fall(r, fmax(0, (r->horizon - before) / span));
    case SLC_RECIPE_COSINE: return fall(r, half_wave(done / span));
    case SLC_RECIPE_INVERSE_SQRT: return fmax(r->least, r->peak / sqrt((done + r->timescale) / r->timescale));
    case SLC_RECIPE_WSD: return before < decays_at ? r->peak : fall(r, half_wave((before - decays_at) / r->decay));
    default: return r->peak;
    }
}

double slc_recipe_rate_at(const slc_recipe_rate *r, double before, double after)
{
    const double rate = before < r->warmup ? r->peak * fmin(after, r->warmup) / r->warmup : by_kind(r, before);
    const bool again = before >= r->again_from && before < r->again_from + r->again;
    return again ? rate * fmin(after - r->again_from, r->again) / r->again : rate;
}
