/* Prints the table of `sluice plan` and `sluice train`. tests/command/plan/plan_table_test.sh covers this file. */
#include "bench/plan/words/table.h"

#include "bench/plan/words/distance_words.h"
#include "bench/plan/words/quantities.h"
#include "lib/base/status.h"
#include "lib/base/text/size_text.h"
#include "lib/plan/strategy_table.h"
#include "sched/search/fullest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

enum { NAMES_BYTES = 256, NAMES_SHOWN = 40 };

/* Returns true if the decision is of a layer of its own, or of several, and not of a tied parameter. */
static bool is_of_layers(const slc_job *job, const slc_decision *d)
{
    return d->unit == SLC_NONE || job->units[d->unit].fused || job->units[d->unit].use_count == 1;
}

/* Returns the last of the neighbouring layers of one row, beginning with decision `first`. */
static uint32_t end_of_run(const slc_job *job, const slc_decision *all, uint32_t count, uint32_t first)
{
    uint32_t last = first;
    for (uint32_t i = first + 1; i < count && is_of_layers(job, &all[first]); i++)
        if (all[i].row == all[first].row && is_of_layers(job, &all[i]) &&
            all[i].first_layer == all[last].last_layer + 1)
            last = i;
    return last;
}

/* Names the layers of a row, as "h.0, h.4-h.6"; what finds no room is counted. */
static void name_row(const slc_shown_plan *shown, const slc_decision *all, uint32_t count, uint32_t row, char *out)
{
    const slc_job *job = &shown->profile->job;
    uint32_t left_out = 0, done = 0; /* layers before `done` have been named */
    *out = 0;
    for (uint32_t i = 0; i < count; i++) {
        char name[NAMES_BYTES];
        const bool of_layers = is_of_layers(job, &all[i]);
        if (all[i].row != row || (of_layers && all[i].first_layer < done)) continue;
        const uint32_t last = end_of_run(job, all, count, i);
        slc_decision_name(shown, &all[i], &all[last], name, sizeof name);
        const size_t used = strlen(out);
        if (used && used + strlen(name) + 2 > NAMES_SHOWN)
            left_out += all[last].last_layer - all[i].first_layer + 1;
        else
            snprintf(out + used, NAMES_BYTES - used, "%s%.80s", used ? ", " : "", name);
        if (of_layers) done = all[last].last_layer + 1;
    }
    const size_t used = strlen(out);
    if (left_out) snprintf(out + used, NAMES_BYTES - used, ", %u more", left_out);
}

/* ---- Rows ---- */

/* The cells of a row. */
typedef struct {
    char layers[NAMES_BYTES], why[512];
    slc_size_text kept;
    const char *strategy, *recomputed;
} row_text;

static void write_row(const slc_shown_plan *shown, const slc_decision *all, uint32_t count, uint32_t row, row_text *out)
{
    slc_decision sum = {0};
    bool first = true;
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].row != row) continue;
        if (first)
            sum = all[i];
        else
            slc_decision_add(&sum, &all[i]);
        first = false;
    }
    name_row(shown, all, count, row, out->layers);
    out->kept = slc_size_of(sum.resident_bytes);
    slc_decision_words(shown, &sum, out->why, sizeof out->why);
    out->strategy = sum.unit == SLC_NONE ? "-" : slc_strategy_name(sum.strategy);
    out->recomputed = !sum.recomputed ? "-" : sum.recomputed < sum.layers ? "some" : "yes";
}

static sluice_status print_rows(FILE *out, const slc_shown_plan *shown)
{
    slc_decision *all;
    uint32_t count, rows;
    int width = (int)sizeof "layers" - 1;
    sluice_status status = slc_decisions_list(shown, &all, &count, &rows);
    if (status) return status;
    row_text *texts = calloc((size_t)rows + 1, sizeof *texts);
    for (uint32_t r = 0; texts && r < rows; r++) {
        write_row(shown, all, count, r, &texts[r]);
        if ((int)strlen(texts[r].layers) > width) width = (int)strlen(texts[r].layers);
    }
    if (texts)
        fprintf(out, "  %-*s  %-8s  %-10s  %10s  %s\n", width, "layers", "strategy", "recomputed", "kept", "why");
    for (uint32_t r = 0; texts && r < rows; r++)
        fprintf(out, "  %-*s  %-8s  %-10s  %10s  %s\n", width, texts[r].layers, texts[r].strategy, texts[r].recomputed,
                texts[r].kept.text, texts[r].why);
    free(all);
    free(texts);
    return texts ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "table of %u rows", rows);
}

/* ---- Sums ---- */

static sluice_status print_memory(FILE *out, const slc_shown_plan *shown)
{
    uint32_t item;
    uint64_t in_train, in_evaluate;
    sluice_status status = slc_fullest_item(&shown->plan->train, &item, &in_train);
    if (!status) status = slc_fullest_item(&shown->plan->evaluate, &item, &in_evaluate);
    if (status) return status;
    const uint64_t total = shown->plan->arena_bytes + shown->profile->job.reserved_bytes;
    fprintf(out, "memory     %s a rank at the peak (%llu bytes)", slc_size_of(total).text, (unsigned long long)total);
    if (shown->budget_bytes) fprintf(out, ", of a budget of %s", slc_size_of(shown->budget_bytes).text);
    if (in_evaluate > in_train) fputs("; an evaluation pass needs the most", out);
    fputc('\n', out);
    return SLUICE_OK;
}

static void print_times(FILE *out, const slc_shown_plan *shown)
{
    const slc_plan_forecast *f = &shown->forecast;
    char a[24], b[24], c[24];
    if (!shown->timed || f->step_s <= 0) return;
    /* One rank communicates with nobody; what it waits for are its updates. */
    fprintf(out, "step       %s predicted: %s of compute, %s of waiting for %s (%.1f %%)",
            slc_plan_seconds(f->step_s, a), slc_plan_seconds(f->compute_s, b), slc_plan_seconds(f->exposed_s, c),
            shown->profile->job.world > 1 ? "communication" : "updates", 100 * f->exposed_s / f->step_s);
    if (f->outside_s > 0) fprintf(out, ", %s outside of slots", slc_plan_seconds(f->outside_s, a));
    fputc('\n', out);
    if (f->bound_s <= 0) return;
    const double above = 100 * (f->step_s / f->bound_s - 1);
    fprintf(out, "bound      lower bound %s; this plan is %.1f %% above", slc_plan_seconds(f->bound_s, a),
            fabs(above) < 0.05 ? 0 : above);
    slc_distance_print_parts(out, f);
    fputc('\n', out);
    slc_distance_print_advice(out, shown);
}

/* Says what planning took, in nominal seconds, and why it ended. */
static void print_planning(FILE *out, const slc_shown_plan *shown)
{
    static const char *const why[] = {
        [SLC_PLANNING_DONE] = "nothing was left to try",
        [SLC_PLANNING_TRIVIAL] = "there was nothing to choose",
        [SLC_PLANNING_PAYS_NO_MORE] = "the steps that are left could not win back more of it",
        [SLC_PLANNING_EFFORT] = "its effort was spent; more of it may find a faster plan (sluice plan --effort)",
        [SLC_PLANNING_TIME_LIMIT] = "its time limit cut it off, so the plan may differ the next time",
    };
    const slc_plan_forecast *f = &shown->forecast;
    char effort[24];
    if (f->effort_s > 0)
        fprintf(out, "planning   ended after an effort of %s: %s\n", slc_plan_seconds(f->effort_s, effort),
                why[f->ended]);
}

/* Returns true if the item is a reduction, a gather, an exchange or an update. */
static bool is_counted(slc_item_kind kind)
{
    return kind != SLC_ITEM_SLOT && kind != SLC_ITEM_AGREE && kind != SLC_ITEM_INSPECT && kind != SLC_ITEM_COMPRESS;
}

static void print_schedule(FILE *out, const slc_shown_plan *shown)
{
    const slc_plan *plan = shown->plan;
    uint32_t kinds[SLC_ITEM_KINDS] = {0}, late = 0;
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        kinds[plan->train.items[i].kind]++;
        late += plan->train.items[i].late && is_counted(plan->train.items[i].kind);
    }
    fprintf(out, "schedule   %s", plan->schedule);
    if (*shown->chosen && strcmp(shown->chosen, plan->schedule)) fprintf(out, " (%s)", shown->chosen);
    fprintf(out, ": %u reductions, ", kinds[SLC_ITEM_REDUCE_SCATTER] + kinds[SLC_ITEM_ALL_REDUCE]);
    if (kinds[SLC_ITEM_EXCHANGE]) fprintf(out, "%u compressed exchanges, ", kinds[SLC_ITEM_EXCHANGE]);
    fprintf(out, "%u gathers, %u updates",
            kinds[SLC_ITEM_GATHER_VALUE] + kinds[SLC_ITEM_GATHER_WINDOW] + kinds[SLC_ITEM_GATHER_GRADIENT],
            kinds[SLC_ITEM_UPDATE]);
    if (late) fprintf(out, "; %u of them run during the next step", late);
    fputc('\n', out);
    if (*shown->note) fprintf(out, "note       %s\n", shown->note);
}

/* Says what the names of the strategies that were chosen mean. */
static void print_legend(FILE *out, const slc_shown_plan *shown)
{
    const char *before = "  (";
    const slc_job *job = &shown->profile->job;
    for (int s = 0; s < SLC_STRATEGIES && job->world > 1; s++) {
        bool there = false;
        for (uint32_t u = 0; u < job->unit_count; u++)
            there |= shown->plan->strategies[u] == (slc_strategy)s && !slc_looks_up(&job->units[u]);
        if (!there) continue;
        const bool alone = s == SLC_FSDP && *before == ' ';
        fprintf(out, "%s%s: %s", before, slc_strategy_name((slc_strategy)s),
                alone ? "parameters, gradients and optimizer state are sharded" : slc_strategies[s].doc);
        before = "; ";
    }
    if (*before == ';') fputs(")\n", out);
}

sluice_status slc_plan_table(FILE *out, const slc_shown_plan *shown)
{
    sluice_status status = print_rows(out, shown);
    if (status) return status;
    print_legend(out, shown);
    status = print_memory(out, shown);
    if (status) return status;
    print_times(out, shown);
    print_planning(out, shown);
    print_schedule(out, shown);
    return SLUICE_OK;
}
