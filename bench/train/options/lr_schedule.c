/* Makes learning rates from the options: refuses options that do not fit together, and describes the others in
 * words. */
#include "bench/train/options/lr_schedule.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {"constant", "linear", "cosine", "inverse_sqrt", "wsd"};
enum { NAMES = sizeof names / sizeof *names };

static slc_recipe_rate_kind kind_of(const slc_training_options *o)
{
    for (int i = 0; i < NAMES; i++)
        if (!strcmp(o->lr_schedule, names[i])) return (slc_recipe_rate_kind)i;
    return SLC_RECIPE_CONSTANT; /* unknown names are refused by the table of options */
}

static bool over_tokens(const slc_training_options *o)
{
    return !strcmp(o->lr_over, "tokens");
}

uint64_t slc_lr_schedule_horizon(const slc_training_options *o)
{
    if (!slc_recipe_rate_ends(kind_of(o))) return 0;
    return o->lr_horizon || over_tokens(o) ? o->lr_horizon : o->steps;
}

void slc_lr_schedule_drop(slc_training_options *o)
{
    o->lr_schedule = names[SLC_RECIPE_CONSTANT];
    o->lr_min = 0;
    o->warmup = o->warmup_again = o->warmup_again_at = o->lr_horizon = o->lr_decay = o->lr_timescale = 0;
}

/* ---- Checking ---- */

typedef unsigned long long whole;

/* Refuses options that have no effect under the schedule, because a user who gives them expects one. */
static sluice_status check_unused(const slc_training_options *o, slc_recipe_rate_kind kind)
{
    if (kind == SLC_RECIPE_CONSTANT && o->lr_min > 0)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "--lr-min %g: the schedule constant never falls below --lr; give --lr-schedule linear, cosine, "
            "inverse_sqrt or wsd",
            o->lr_min);
    if (!slc_recipe_rate_ends(kind) && o->lr_horizon)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-horizon %llu: the schedule %s has no end; give --lr-schedule linear, cosine or wsd",
                         (whole)o->lr_horizon, o->lr_schedule);
    if (kind != SLC_RECIPE_WSD && o->lr_decay)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-decay %llu: only the schedule wsd has a decay of its own; give --lr-schedule wsd, or "
                         "leave it out",
                         (whole)o->lr_decay);
    if (kind != SLC_RECIPE_INVERSE_SQRT && o->lr_timescale)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-timescale %llu: only the schedule inverse_sqrt has one; give --lr-schedule "
                         "inverse_sqrt, or leave it out",
                         (whole)o->lr_timescale);
    if (o->lr_min > o->learning_rate)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-min %g is above --lr %g, the rate from which the schedule falls; give less", o->lr_min,
                         o->learning_rate);
    return SLUICE_OK;
}

/* Checks a schedule over tokens, in which nothing follows from --steps: what a step takes may change when a run is
 * resumed. */
static sluice_status check_tokens(const slc_training_options *o, const slc_lr_schedule *s, uint64_t tokens_per_step)
{
    const struct {
        const char *name;
        uint64_t tokens;
    } times[] = {{"warmup", o->warmup},
                 {"warmup-again", o->warmup_again},
                 {"lr-horizon", o->lr_horizon},
                 {"lr-decay", o->lr_decay},
                 {"lr-timescale", o->lr_timescale}};
    if (slc_recipe_rate_ends(s->rate.kind) && !o->lr_horizon)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "--lr-over tokens: the schedule %s ends after a number of tokens; give it, as --lr-horizon 3e9",
            o->lr_schedule);
    if (s->rate.kind == SLC_RECIPE_INVERSE_SQRT && !o->lr_timescale && !o->warmup)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-over tokens: without --warmup the schedule inverse_sqrt needs a number of tokens; give "
                         "it, as --lr-timescale 1e8");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i].tokens && times[i].tokens < tokens_per_step)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "--%s %llu: a step takes %llu tokens, and --lr-over tokens counts them; give more, or "
                             "--lr-over steps",
                             times[i].name, (whole)times[i].tokens, (whole)tokens_per_step);
    return SLUICE_OK;
}

static sluice_status check_times(const slc_training_options *o, const slc_lr_schedule *s)
{
    const char *from = o->lr_horizon ? "--lr-horizon" : "--steps";
    if (!slc_recipe_rate_ends(s->rate.kind)) return SLUICE_OK;
    if (s->rate.warmup >= s->rate.horizon)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--warmup %llu: the schedule %s ends after %.0f %s (%s), so nothing is left in which the rate "
                         "could fall; give a shorter warm-up or a longer --lr-horizon",
                         (whole)o->warmup, o->lr_schedule, s->rate.horizon, o->lr_over, from);
    if (s->rate.decay > s->rate.horizon - s->rate.warmup)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-decay %.0f: the schedule ends after %.0f %s (%s), of which the warm-up takes %llu; give "
                         "%.0f at most",
                         s->rate.decay, s->rate.horizon, o->lr_over, from, (whole)o->warmup,
                         s->rate.horizon - s->rate.warmup);
    return SLUICE_OK;
}

sluice_status slc_lr_schedule_check_last(const slc_lr_schedule *s, double last)
{
    if (!slc_recipe_rate_ends(s->rate.kind) || s->rate.peak <= 0 || s->rate.least > 0 || last < s->rate.horizon)
        return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--lr-horizon %.0f: from there on the learning rate is 0, and --steps goes on; give --lr-min, a "
                     "longer --lr-horizon or fewer --steps",
                     s->rate.horizon);
}

static sluice_status check_again(const slc_training_options *o, const slc_lr_schedule *s)
{
    const slc_recipe_rate *r = &s->rate;
    if (!o->warmup_again != !o->warmup_again_at)
        return slc_error(
            SLUICE_ERR_ARGUMENT, "--%s: give --%s too: from where on, and for how long the rate grows again",
            o->warmup_again ? "warmup-again" : "warmup-again-at", o->warmup_again ? "warmup-again-at" : "warmup-again");
    if (!o->warmup_again) return SLUICE_OK;
    if (r->again_from < r->warmup)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--warmup-again-at %llu lies inside the first warm-up of %llu %s; give %llu or more",
                         (whole)o->warmup_again_at, (whole)o->warmup, o->lr_over, (whole)o->warmup);
    if (slc_recipe_rate_ends(r->kind) && r->again_from + r->again > r->horizon)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "--warmup-again-at %llu: the second warm-up of %llu %s goes on beyond %.0f, where the schedule "
            "%s ends; begin it earlier, or give a longer --lr-horizon",
            (whole)o->warmup_again_at, (whole)o->warmup_again, o->lr_over, r->horizon, o->lr_schedule);
    return SLUICE_OK;
}

sluice_status slc_lr_schedule_make(const slc_training_options *o, uint64_t tokens_per_step, slc_lr_schedule *out)
{
    const bool tokens = over_tokens(o);
    *out = (slc_lr_schedule){.tokens = tokens,
                             .stride = tokens && tokens_per_step ? (double)tokens_per_step : 1,
                             .rate = {.kind = kind_of(o),
                                      .peak = o->learning_rate,
                                      .least = o->lr_min,
                                      .warmup = (double)o->warmup,
                                      .horizon = (double)slc_lr_schedule_horizon(o),
                                      .decay = (double)o->lr_decay,
                                      .timescale = (double)o->lr_timescale,
                                      .again_from = (double)o->warmup_again_at,
                                      .again = (double)o->warmup_again}};
    sluice_status status = check_unused(o, out->rate.kind);
    if (!status && tokens) status = check_tokens(o, out, tokens_per_step);
    if (status) return status;
    slc_recipe_rate_complete(&out->rate, out->stride);
    status = check_times(o, out);
    if (!status) status = check_again(o, out);
    if (!status && !tokens) status = slc_lr_schedule_check_last(out, (double)o->steps - 1);
    return status;
}

/* ---- Words ---- */

static size_t add_warmup(const slc_lr_schedule *s, const char *unit, char *text, size_t bytes)
{
    const int letters = (int)strlen(unit) - (s->rate.warmup == 1); /* "steps", but "1 step" */
    int length = s->rate.warmup > 0 ? snprintf(text, bytes, "%.6g after a warm-up over %.10g %.*s", s->rate.peak,
                                               s->rate.warmup, letters, unit)
                                    : snprintf(text, bytes, "%.6g", s->rate.peak);
    return length < 0 || (size_t)length >= bytes ? bytes : (size_t)length;
}

/* Writes what follows the warm-up; returns the length, as snprintf does. */
static int add_course(const slc_lr_schedule *s, const char *unit, const char *at, char *rest, size_t bytes)
{
    const slc_recipe_rate *r = &s->rate;
    switch (r->kind) {
    case SLC_RECIPE_CONSTANT: return snprintf(rest, bytes, "%s", r->warmup > 0 ? ", then constant" : "");
    case SLC_RECIPE_INVERSE_SQRT:
        return snprintf(rest, bytes, ", then falling as 1/sqrt(1 + %s / %.10g)", unit, r->timescale);
    case SLC_RECIPE_WSD:
        return snprintf(rest, bytes, ", stays until %s %.10g, then falls as a cosine to %.6g at %s %.10g", at,
                        r->horizon - r->decay, r->least, at, r->horizon);
    default: return snprintf(rest, bytes, ", then %s to %.6g at %s %.10g", names[r->kind], r->least, at, r->horizon);
    }
}

void slc_lr_schedule_words(const slc_lr_schedule *s, char *text, size_t bytes)
{
    const char *unit = s->tokens ? "tokens" : "steps", *at = s->tokens ? "token" : "step";
    size_t used = add_warmup(s, unit, text, bytes);
    const int length = used < bytes ? add_course(s, unit, at, text + used, bytes - used) : 0;
    used += length > 0 ? (size_t)length : 0;
    if (s->rate.again > 0 && used < bytes)
        snprintf(text + used, bytes - used, ", with a second warm-up from %s %.10g over %.10g %s", at,
                 s->rate.again_from, s->rate.again, unit);
}
