/* Learning rates from the options. Every time is a number on one clock, so steps and tokens need no code of their own.
 */
#include "bench/train/options/lr_schedule.h"

#include "lib/base/numbers/equal_math.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TIMESCALE_STEPS = 10000 }; /* of transformers, if there is no warm-up */
static const double PI = 3.14159265358979323846;

static const char *const names[] = {"constant", "linear", "cosine", "inverse_sqrt", "wsd"};
enum { NAMES = sizeof names / sizeof *names };

static slc_lr_kind kind_of(const slc_training_options *o)
{
    for (int i = 0; i < NAMES; i++)
        if (!strcmp(o->lr_schedule, names[i])) return (slc_lr_kind)i;
    return SLC_LR_CONSTANT; /* unknown names are refused by the table of options */
}

static bool ends(slc_lr_kind kind)
{
    return kind == SLC_LR_LINEAR || kind == SLC_LR_COSINE || kind == SLC_LR_WSD;
}

static bool over_tokens(const slc_training_options *o)
{
    return !strcmp(o->lr_over, "tokens");
}

uint64_t slc_lr_schedule_horizon(const slc_training_options *o)
{
    if (!ends(kind_of(o))) return 0;
    return o->lr_horizon || over_tokens(o) ? o->lr_horizon : o->steps;
}

void slc_lr_schedule_drop(slc_training_options *o)
{
    o->lr_schedule = names[SLC_LR_CONSTANT];
    o->lr_min = 0;
    o->warmup = o->lr_horizon = o->lr_decay = o->lr_timescale = 0;
}

/* ---- Rates ---- */

static double fall(const slc_lr_schedule *s, double share)
{
    return s->least + (s->peak - s->least) * share;
}

static double half_wave(double progress)
{
    return 0.5 * (1 + slc_cosine(PI * fmin(progress, 1)));
}

double slc_lr_schedule_rate(const slc_lr_schedule *s, double before)
{
    if (before < s->warmup) return s->peak * fmin(before + s->stride, s->warmup) / s->warmup;
    const double done = before - s->warmup, span = s->horizon - s->warmup, decays_at = s->horizon - s->decay;
    switch (s->kind) {
    case SLC_LR_LINEAR: return fall(s, fmax(0, (s->horizon - before) / span));
    case SLC_LR_COSINE: return fall(s, half_wave(done / span));
    case SLC_LR_INVERSE_SQRT: return fmax(s->least, s->peak / sqrt((done + s->timescale) / s->timescale));
    case SLC_LR_WSD: return before < decays_at ? s->peak : fall(s, half_wave((before - decays_at) / s->decay));
    default: return s->peak;
    }
}

/* ---- Checking ---- */

typedef unsigned long long whole;

/* Refuses options that have no effect under the schedule, because a user who gives them expects one. */
static sluice_status check_unused(const slc_training_options *o, slc_lr_kind kind)
{
    if (kind == SLC_LR_CONSTANT && o->lr_min > 0)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "--lr-min %g: the schedule constant never falls below --lr; give --lr-schedule linear, cosine, "
            "inverse_sqrt or wsd",
            o->lr_min);
    if (!ends(kind) && o->lr_horizon)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-horizon %llu: the schedule %s has no end; give --lr-schedule linear, cosine or wsd",
                         (whole)o->lr_horizon, o->lr_schedule);
    if (kind != SLC_LR_WSD && o->lr_decay)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-decay %llu: only the schedule wsd has a decay of its own; give --lr-schedule wsd, or "
                         "leave it out",
                         (whole)o->lr_decay);
    if (kind != SLC_LR_INVERSE_SQRT && o->lr_timescale)
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
                 {"lr-horizon", o->lr_horizon},
                 {"lr-decay", o->lr_decay},
                 {"lr-timescale", o->lr_timescale}};
    if (ends(s->kind) && !o->lr_horizon)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "--lr-over tokens: the schedule %s ends after a number of tokens; give it, as --lr-horizon 3e9",
            o->lr_schedule);
    if (s->kind == SLC_LR_INVERSE_SQRT && !o->lr_timescale && !o->warmup)
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
    if (!ends(s->kind)) return SLUICE_OK;
    if (s->warmup >= s->horizon)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--warmup %llu: the schedule %s ends after %.0f %s (%s), so nothing is left in which the rate "
                         "could fall; give a shorter warm-up or a longer --lr-horizon",
                         (whole)o->warmup, o->lr_schedule, s->horizon, o->lr_over, from);
    if (s->decay > s->horizon - s->warmup)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-decay %.0f: the schedule ends after %.0f %s (%s), of which the warm-up takes %llu; give "
                         "%.0f at most",
                         s->decay, s->horizon, o->lr_over, from, (whole)o->warmup, s->horizon - s->warmup);
    return SLUICE_OK;
}

sluice_status slc_lr_schedule_check_last(const slc_lr_schedule *s, double last)
{
    if (!ends(s->kind) || s->peak <= 0 || s->least > 0 || last < s->horizon) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--lr-horizon %.0f: from there on the learning rate is 0, and --steps goes on; give --lr-min, a "
                     "longer --lr-horizon or fewer --steps",
                     s->horizon);
}

static void set_defaults(const slc_training_options *o, slc_lr_schedule *s)
{
    if (s->kind == SLC_LR_WSD && !s->decay) {
        const double tenth = fmax(floor(s->horizon / 10), s->stride), left = s->horizon - s->warmup;
        s->decay = left > 0 ? fmin(tenth, left) : tenth;
    }
    if (s->kind == SLC_LR_INVERSE_SQRT && !s->timescale) s->timescale = o->warmup ? (double)o->warmup : TIMESCALE_STEPS;
}

sluice_status slc_lr_schedule_make(const slc_training_options *o, uint64_t tokens_per_step, slc_lr_schedule *out)
{
    const bool tokens = over_tokens(o);
    *out = (slc_lr_schedule){.kind = kind_of(o),
                             .tokens = tokens,
                             .stride = tokens && tokens_per_step ? (double)tokens_per_step : 1,
                             .peak = o->learning_rate,
                             .least = o->lr_min,
                             .warmup = (double)o->warmup,
                             .horizon = (double)slc_lr_schedule_horizon(o),
                             .decay = (double)o->lr_decay,
                             .timescale = (double)o->lr_timescale};
    sluice_status status = check_unused(o, out->kind);
    if (!status && tokens) status = check_tokens(o, out, tokens_per_step);
    if (status) return status;
    set_defaults(o, out);
    status = check_times(o, out);
    if (!status && !tokens) status = slc_lr_schedule_check_last(out, (double)o->steps - 1);
    return status;
}

/* ---- Words ---- */

static size_t add_warmup(const slc_lr_schedule *s, const char *unit, char *text, size_t bytes)
{
    const int letters = (int)strlen(unit) - (s->warmup == 1); /* "steps", but "1 step" */
    int length = s->warmup > 0
                     ? snprintf(text, bytes, "%.6g after a warm-up over %.10g %.*s", s->peak, s->warmup, letters, unit)
                     : snprintf(text, bytes, "%.6g", s->peak);
    return length < 0 || (size_t)length >= bytes ? bytes : (size_t)length;
}

void slc_lr_schedule_words(const slc_lr_schedule *s, char *text, size_t bytes)
{
    const char *unit = s->tokens ? "tokens" : "steps", *at = s->tokens ? "token" : "step";
    size_t used = add_warmup(s, unit, text, bytes);
    char *rest = text + used;
    bytes -= used;
    if (s->kind == SLC_LR_CONSTANT)
        snprintf(rest, bytes, "%s", s->warmup > 0 ? ", then constant" : "");
    else if (s->kind == SLC_LR_INVERSE_SQRT)
        snprintf(rest, bytes, ", then falling as 1/sqrt(1 + %s / %.10g)", unit, s->timescale);
    else if (s->kind == SLC_LR_WSD)
        snprintf(rest, bytes, ", stays until %s %.10g, then falls as a cosine to %.6g at %s %.10g", at,
                 s->horizon - s->decay, s->least, at, s->horizon);
    else
        snprintf(rest, bytes, ", then %s to %.6g at %s %.10g", names[s->kind], s->least, at, s->horizon);
}
