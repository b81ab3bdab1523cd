/* Says in words, and as JSON, what was decided and why. tests/command/plan/plan_table_test.sh covers this file. */
#include "bench/plan/words/decisions.h"

#include "bench/plan/words/distance_words.h"
#include "bench/plan/words/quantities.h"
#include "lib/base/text/size_text.h"
#include "lib/plan/strategy_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double NOTHING_S = 0.5e-6; /* is shown as 0 us */
static const double SAME = 0.0005;      /* a smaller share of the step would be shown as 0.0 % */

typedef struct {
    char text[32];
} quantity;

/* "96.0 KiB" is shown as "96 KiB". */
static quantity without_zero(quantity q)
{
    char *zero = strstr(q.text, ".0 ");
    if (zero) memmove(zero, zero + 2, strlen(zero + 2) + 1);
    return q;
}

static quantity bytes_of(int64_t bytes)
{
    quantity q;
    const uint64_t amount = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    snprintf(q.text, sizeof q.text, "%s%s", bytes < 0 ? "-" : "", slc_size_of(amount).text);
    return without_zero(q);
}

static quantity seconds_of(double s)
{
    quantity q;
    slc_plan_seconds(s < NOTHING_S ? 0 : s, q.text);
    return without_zero(q);
}

__attribute__((format(printf, 3, 4))) static void append(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list list;
    va_start(list, format);
    vsnprintf(out + used, size - used, format, list);
    va_end(list);
}

/* ---- Words ---- */

static void explain_onebit(const slc_shown_plan *shown, const slc_decision *d, char *out, size_t size)
{
    append(out, size, "one bit an element: keeps %s more than sdp", bytes_of(d->more_bytes).text);
    if (shown->timed)
        append(out, size, ", exchanged in %s and compressed in %s instead of averaged in %s",
               seconds_of(d->exchange_s).text, seconds_of(d->passes_s).text, seconds_of(d->averaged_s).text);
}

static void explain_rows(const slc_shown_plan *shown, const slc_decision *d, char *out, size_t size)
{
    const slc_unit *unit = &shown->profile->job.units[d->unit];
    append(out, size, "at most %llu of the table's %llu rows a micro-batch come and go",
           (unsigned long long)unit->most_rows, (unsigned long long)unit->row_count);
    if (shown->timed)
        append(out, size, ": gathered in %s, reduced in %s", seconds_of(d->rows_gather_s).text,
               seconds_of(d->rows_reduce_s).text);
}

static void explain_sharding(const slc_shown_plan *shown, const slc_decision *d, char *out, size_t size)
{
    const bool nothing = d->gathers_s < NOTHING_S;
    if (d->strategy == SLC_FSDP)
        append(out, size, "sharded: saves %s a rank", bytes_of(d->more_bytes).text);
    else
        append(out, size, "whole: keeps %s more", bytes_of(d->more_bytes).text);
    if (!shown->timed) return;
    if (d->strategy == SLC_FSDP && nothing)
        append(out, size, ", free");
    else if (d->strategy == SLC_FSDP)
        append(out, size, ", costs %s of communication", seconds_of(d->gathers_s).text);
    else if (!nothing)
        append(out, size, ", saves %s of communication", seconds_of(d->gathers_s).text);
}

static void explain_strategy(const slc_shown_plan *shown, const slc_decision *d, char *out, size_t size)
{
    const slc_job *job = &shown->profile->job;
    const slc_unit *unit = &job->units[d->unit];
    if (slc_looks_up(unit))
        explain_rows(shown, d, out, size);
    else if (job->world == 1)
        append(out, size, "one rank: there is nothing to shard");
    else if (d->strategy == SLC_ONEBIT && !unit->trainable)
        append(out, size, "frozen");
    else if (d->strategy == SLC_ONEBIT)
        explain_onebit(shown, d, out, size);
    else if (d->strategy == SLC_FSDP || d->strategy == SLC_SDP)
        explain_sharding(shown, d, out, size);
    else if (d->strategy == SLC_OSS && !slc_unit_may_be(job, unit, SLC_DP))
        append(out, size, "as asked for, or for dp, which a table that is split by its uses cannot be");
    else
        append(out, size, "as asked for");
    if (d->fused_s > 0 && job->world > 1) {
        append(out, size, "; sent as one");
        if (shown->timed) append(out, size, ": saves %s of latency", seconds_of(d->fused_s).text);
    }
}

/* The next best choice for a row; NULL: there is none, or nobody asked. */
static const slc_other_choice *other_of(const slc_shown_plan *shown, const slc_decision *d)
{
    if (!shown->others || d->unit == SLC_NONE || shown->others[d->unit].strategy == SLC_STRATEGIES) return NULL;
    return &shown->others[d->unit];
}

static void explain_other(const slc_shown_plan *shown, const slc_other_choice *other, char *out, size_t size)
{
    const double step_s = shown->forecast.step_s, slower_s = other->step_s - step_s;
    const char *name = slc_strategy_name(other->strategy);
    if (!other->fits)
        append(out, size, "; no other fits: %s needs %s above the budget", name,
               bytes_of((int64_t)(other->bytes - shown->budget_bytes)).text);
    else if (fabs(slower_s) < SAME * step_s)
        append(out, size, "; next best: %s, no slower", name);
    else
        append(out, size, "; next best: %s, %s (%.1f %%) %s", name, seconds_of(fabs(slower_s)).text,
               100 * fabs(slower_s) / step_s, slower_s > 0 ? "slower" : "faster");
}

void slc_decision_words(const slc_shown_plan *shown, const slc_decision *d, char *out, size_t size)
{
    const slc_other_choice *other = other_of(shown, d);
    *out = 0;
    if (d->unit != SLC_NONE) explain_strategy(shown, d, out, size);
    if (d->recomputed) {
        append(out, size, "%srecomputed: saves %s", *out ? "; " : "", bytes_of((int64_t)d->recompute_bytes).text);
        if (shown->timed) append(out, size, ", costs %s a step", seconds_of(d->recompute_s).text);
    }
    if (other) explain_other(shown, other, out, size);
}

void slc_decision_name(const slc_shown_plan *shown, const slc_decision *first, const slc_decision *last, char *out,
                       size_t size)
{
    const slc_job *job = &shown->profile->job;
    const slc_unit *unit = first->unit == SLC_NONE ? NULL : &job->units[first->unit];
    if (unit && !unit->fused && first == last)
        snprintf(out, size, "%s", unit->name);
    else if (first->first_layer == last->last_layer)
        snprintf(out, size, "%s", job->layers[first->first_layer]);
    else
        snprintf(out, size, "%s-%s%s", job->layers[first->first_layer], job->layers[last->last_layer],
                 unit && !unit->trainable ? " frozen" : "");
}

/* ---- JSON ---- */

static json_t *time_json(const slc_shown_plan *shown, double s)
{
    return shown->timed ? json_real(s) : json_null();
}

static json_t *other_json(const slc_shown_plan *shown, const slc_decision *d)
{
    const slc_other_choice *other = other_of(shown, d);
    if (!other) return json_null();
    const uint64_t over = other->fits ? 0 : other->bytes - shown->budget_bytes;
    return json_pack("{s:s, s:b, s:o, s:o, s:I, s:I}", "strategy", slc_strategy_name(other->strategy), "fits",
                     other->fits, "step_s", other->fits ? json_real(other->step_s) : json_null(), "slower_s",
                     other->fits ? json_real(other->step_s - shown->forecast.step_s) : json_null(), "planned_bytes",
                     (json_int_t)other->bytes, "over_budget_bytes", (json_int_t)over);
}

static json_t *decision_json(const slc_shown_plan *shown, const slc_decision *d)
{
    char name[256], words[512];
    const bool sharding = d->strategy == SLC_FSDP || d->strategy == SLC_SDP;
    slc_decision_name(shown, d, d, name, sizeof name);
    slc_decision_words(shown, d, words, sizeof words);
    return json_pack("{s:s, s:s?, s:b, s:I, s:o, s:o, s:I, s:o, s:o, s:s}", "name", name, "strategy",
                     d->unit == SLC_NONE ? NULL : slc_strategy_name(d->strategy), "recomputed", d->recomputed > 0,
                     "resident_bytes", (json_int_t)d->resident_bytes, "sharding_saves_bytes",
                     sharding ? json_integer(d->more_bytes) : json_null(), "sharding_costs_s",
                     sharding ? time_json(shown, d->gathers_s) : json_null(), "recomputing_saves_bytes",
                     (json_int_t)d->recompute_bytes, "recomputing_costs_s", time_json(shown, d->recompute_s),
                     "next_best", other_json(shown, d), "why", words);
}

static json_t *predicted(const slc_shown_plan *shown, double s)
{
    return shown->timed && s > 0 ? json_real(s) : json_null();
}

json_t *slc_decisions_json(const slc_shown_plan *shown)
{
    slc_decision *decisions;
    uint32_t count, rows;
    const slc_plan_forecast *f = &shown->forecast;
    if (slc_decisions_list(shown, &decisions, &count, &rows)) return NULL;
    json_t *units = json_array();
    for (uint32_t i = 0; i < count; i++) json_array_append_new(units, decision_json(shown, &decisions[i]));
    free(decisions);
    const bool bound = shown->timed && f->bound_s > 0;
    json_t *planning = json_pack("{s:s, s:f, s:f}", "ended", slc_planning_end_name(f->ended), "effort_s", f->effort_s,
                                 "searched_s", f->searched_s);
    return json_pack("{s:s, s:s, s:s, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schedule",
                     shown->plan->schedule, "chosen", shown->chosen, "note", shown->note, "measured", shown->timed,
                     "planned_bytes", (json_int_t)(shown->plan->arena_bytes + shown->profile->job.reserved_bytes),
                     "budget_bytes", shown->budget_bytes ? json_integer((json_int_t)shown->budget_bytes) : json_null(),
                     "step_s", predicted(shown, f->step_s), "compute_s", predicted(shown, f->compute_s), "exposed_s",
                     shown->timed && f->step_s > 0 ? json_real(f->exposed_s) : json_null(), "outside_s",
                     shown->timed && f->step_s > 0 ? json_real(f->outside_s) : json_null(), "bound_s",
                     predicted(shown, f->bound_s), "above_bound",
                     bound ? json_real(f->step_s / f->bound_s - 1) : json_null(), "distance",
                     bound ? slc_distance_json(&f->distance) : json_null(), "planning", planning, "units", units);
}
