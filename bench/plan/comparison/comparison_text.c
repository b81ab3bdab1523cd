/* A cell says "sdp" if both plans agree, and "sdp -> fsdp" if they do not.
 * tests/command/plan/plan_compare_test.sh covers this file. */
#include "bench/plan/comparison/comparison.h"

#include "bench/plan/words/quantities.h"
#include "lib/base/text/size_text.h"

#include <math.h>
#include <string.h>

enum { CELL = 128, NAME = 512 };
static const double SHOWN = 0.0005; /* of the step: a smaller change of waits is not shown */

/* ---- Quantities ---- */

static void write_bytes_change(uint64_t a, uint64_t b, char *out)
{
    if (a == b)
        snprintf(out, CELL, "-");
    else
        snprintf(out, CELL, "%c%s", a < b ? '+' : '-', slc_size_of(a < b ? b - a : a - b).text);
}

static void write_seconds_change(double a, double b, char *out)
{
    char text[24];
    snprintf(out, CELL, "%c%s", b < a ? '-' : '+', slc_plan_seconds(fabs(b - a), text));
}

static void write_words(const char *a, const char *b, char *out)
{
    if (strcmp(a, b))
        snprintf(out, CELL, "%s -> %s", a, b);
    else
        snprintf(out, CELL, "%s", a);
}

/* ---- The whole step ---- */

static void print_seconds(FILE *out, const char *what, double a, double b, double step_s)
{
    char from[24], to[24], change[CELL];
    write_seconds_change(a, b, change);
    fprintf(out, "%-10s  %-12s  %-12s  %s", what, slc_plan_seconds(a, from), slc_plan_seconds(b, to), change);
    if (step_s > 0) fprintf(out, " (%+.1f %% of a step)", 100 * (b - a) / step_s);
    fputc('\n', out);
}

static void print_sums(FILE *out, const slc_comparison *c)
{
    const slc_forecast *a = &c->forecasts[0], *b = &c->forecasts[1];
    char bytes[CELL];
    fprintf(out, "A           %s\nB           %s\n\n%-10s  %-12s  %-12s  %s\n", c->names[0], c->names[1], "", "A", "B",
            "change");
    print_seconds(out, "step", a->step_s, b->step_s, a->step_s);
    print_seconds(out, "compute", a->compute_s, b->compute_s, a->step_s);
    print_seconds(out, "waiting", a->exposed_s, b->exposed_s, a->step_s);
    write_bytes_change(c->peaks[0], c->peaks[1], bytes);
    fprintf(out, "%-10s  %-12s  %-12s  %s\n", "memory", slc_size_of(c->peaks[0]).text, slc_size_of(c->peaks[1]).text,
            bytes);
    fprintf(out, "%-10s  %-12s  %s\n", "schedule", c->plans[0]->schedule, c->plans[1]->schedule);
}

/* ---- Layers ---- */

/* Neighbouring layers for which the same was decided: sums of their bytes and waits. */
typedef struct {
    uint32_t first, last;
    slc_compared_part sum[SLC_COMPARED];
} run;

static bool decided_alike(const slc_compared_part *a, const slc_compared_part *b)
{
    return !strcmp(a->strategy, b->strategy) && !strcmp(a->recomputed, b->recomputed) &&
           !strcmp(a->updates, b->updates);
}

static void add_part(slc_compared_part *sum, const slc_compared_part *part)
{
    sum->kept += part->kept;
    sum->at_peak += part->at_peak;
    sum->waits_s += part->waits_s;
    if (part->longest_s <= sum->longest_s) return;
    sum->longest_s = part->longest_s;
    memcpy(sum->waits_for, part->waits_for, sizeof sum->waits_for);
}

static run run_from(const slc_comparison *c, uint32_t first)
{
    run r = {.first = first, .last = first};
    for (int of = 0; of < SLC_COMPARED; of++) r.sum[of] = c->layers[first].of[of];
    for (uint32_t i = first + 1; i < c->count; i++) {
        const slc_compared_layer *layer = &c->layers[i];
        if (!decided_alike(&layer->of[0], &r.sum[0]) || !decided_alike(&layer->of[1], &r.sum[1])) break;
        r.last = i;
        for (int of = 0; of < SLC_COMPARED; of++) add_part(&r.sum[of], &layer->of[of]);
    }
    return r;
}

static bool differs(const slc_comparison *c, const run *r)
{
    const slc_compared_part *a = &r->sum[0], *b = &r->sum[1];
    return !decided_alike(a, b) || a->kept != b->kept || a->at_peak != b->at_peak ||
           fabs(a->waits_s - b->waits_s) > SHOWN * c->forecasts[0].step_s;
}

/* The cells of a row, in the order of its columns; the last one has no width of its own. */
enum { COLUMNS = 8 };
typedef struct {
    char cells[COLUMNS][NAME];
} row;

static const row head = {
    {"layers", "strategy", "recomputed", "updates", "kept", "at the peak", "waits", "the longest wait is for"}};

static row row_of(const slc_comparison *c, const run *r)
{
    const slc_compared_part *a = &r->sum[0], *b = &r->sum[1];
    row text;
    char from[24], to[24];
    snprintf(text.cells[0], NAME, r->first == r->last ? "%.80s" : "%.80s-%.80s", c->layers[r->first].name,
             c->layers[r->last].name);
    write_words(a->strategy, b->strategy, text.cells[1]);
    write_words(a->recomputed, b->recomputed, text.cells[2]);
    write_words(a->updates, b->updates, text.cells[3]);
    write_bytes_change(a->kept, b->kept, text.cells[4]);
    write_bytes_change(a->at_peak, b->at_peak, text.cells[5]);
    write_words(slc_plan_seconds(a->waits_s, from), slc_plan_seconds(b->waits_s, to), text.cells[6]);
    snprintf(text.cells[7], NAME, "%s", strcmp(a->waits_for, b->waits_for) ? "" : a->waits_for);
    if (strcmp(a->waits_for, b->waits_for))
        snprintf(text.cells[7], NAME, "%s -> %s", *a->waits_for ? a->waits_for : "-",
                 *b->waits_for ? b->waits_for : "-");
    return text;
}

static void widen(const row *r, int *widths)
{
    for (int k = 0; k + 1 < COLUMNS; k++)
        if ((int)strlen(r->cells[k]) > widths[k]) widths[k] = (int)strlen(r->cells[k]);
}

static void print_row(FILE *out, const row *r, const int *widths)
{
    for (int k = 0; k + 1 < COLUMNS; k++) fprintf(out, "  %-*s", widths[k], r->cells[k]);
    fprintf(out, "%s%s\n", *r->cells[COLUMNS - 1] ? "  " : "", r->cells[COLUMNS - 1]);
}

/* Goes over the runs that differ: prints them if `out` is there, else finds widths. Returns how many there are. */
static uint32_t go_over_runs(FILE *out, const slc_comparison *c, int *widths)
{
    uint32_t rows = 0;
    for (uint32_t first = 0; first < c->count;) {
        const run r = run_from(c, first);
        first = r.last + 1;
        if (!differs(c, &r)) continue;
        const row text = row_of(c, &r);
        rows++;
        if (out)
            print_row(out, &text, widths);
        else
            widen(&text, widths);
    }
    return rows;
}

void slc_comparison_print(FILE *out, const slc_comparison *c)
{
    int widths[COLUMNS] = {0};
    print_sums(out, c);
    widen(&head, widths);
    if (!go_over_runs(NULL, c, widths)) {
        fprintf(out, "no layer differs\n");
        return;
    }
    fprintf(out, "\n");
    print_row(out, &head, widths);
    go_over_runs(out, c, widths);
}

/* ---- JSON ---- */

static json_t *plan_json(const slc_comparison *c, int of)
{
    const slc_forecast *f = &c->forecasts[of];
    return json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:I}", "name", c->names[of], "schedule", c->plans[of]->schedule,
                     "step_s", f->step_s, "compute_s", f->compute_s, "exposed_s", f->exposed_s, "communication_s",
                     f->communication_s, "planned_bytes", (json_int_t)c->peaks[of]);
}

static json_t *layer_json(const slc_compared_layer *layer)
{
    const slc_compared_part *a = &layer->of[0], *b = &layer->of[1];
    return json_pack("{s:s, s:[s,s], s:[b,b], s:[s,s], s:[I,I], s:[I,I], s:[f,f], s:[s,s]}", "name", layer->name,
                     "strategy", a->strategy, b->strategy, "recomputed", *a->recomputed == 'y', *b->recomputed == 'y',
                     "updates", a->updates, b->updates, "resident_bytes", (json_int_t)a->kept, (json_int_t)b->kept,
                     "peak_bytes", (json_int_t)a->at_peak, (json_int_t)b->at_peak, "waits_s", a->waits_s, b->waits_s,
                     "waits_for", a->waits_for, b->waits_for);
}

json_t *slc_comparison_json(const slc_comparison *c)
{
    json_t *layers = json_array();
    for (uint32_t i = 0; i < c->count; i++) json_array_append_new(layers, layer_json(&c->layers[i]));
    return json_pack("{s:[o,o], s:o}", "plans", plan_json(c, 0), plan_json(c, 1), "layers", layers);
}
