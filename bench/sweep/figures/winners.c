/* Cells with equal plans are one rival: they have one figure (spread.h). */
#include "bench/sweep/figures/figures.h"

#include "bench/sweep/figures/spread.h"
#include "lib/plan/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs that are equal under these do the same work on equal machines, so that one can be called the fastest. */
static const char *const budget_keys[] = {"throttle",
                                          "budget",
                                          "model",
                                          "size",
                                          "world",
                                          "settings.batch",
                                          "settings.context",
                                          "settings.threads",
                                          "step_micro_batches",
                                          "settings.precision",
                                          "device",
                                          "environment.host",
                                          "recipe_file",
                                          NULL};
/* auto is compared with runs that are equal under these. */
static const char *const beside_keys[] = {"throttle", "budget", "tied", "world", "label", NULL};

enum { NAMED_MAX = 8 };

typedef struct {
    const json_t *run; /* the first of its cell */
    slc_bench_spread step;
} rival;

/* ---- Rivals ---- */

static int by_median(const void *a, const void *b)
{
    const double of_a = ((const rival *)a)->step.median, of_b = ((const rival *)b)->step.median;
    return (of_a > of_b) - (of_a < of_b);
}

/* Gathers the cells that equal `like` under `keys` and that `wanted` accepts (NULL: all), the fastest first. The caller
 * frees; NULL without memory, or *count 0. */
static rival *gather_rivals(const json_t *runs, const json_t *like, const char *const *keys,
                            bool (*wanted)(const json_t *), size_t *count)
{
    rival *rivals = calloc(json_array_size(runs) + 1, sizeof *rivals);
    *count = 0;
    for (size_t i = 0; rivals && i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        if ((wanted && !wanted(run)) || !slc_bench_alike(run, like, keys)) continue;
        if (!slc_bench_complete(run) || !slc_bench_is_first(runs, i, slc_bench_cell_keys)) continue;
        const slc_bench_spread step = slc_bench_figure(runs, run, "step_s");
        if (step.count) rivals[(*count)++] = (rival){run, step};
    }
    if (rivals) qsort(rivals, *count, sizeof *rivals, by_median);
    return rivals;
}

/* Returns true if both are of one plan, so that they have one figure. */
static bool are_one(const json_t *runs, const rival *a, const rival *b)
{
    return slc_bench_same_plan(a->run, b->run) && slc_bench_count_plans(runs, a->run) == 1 &&
           slc_bench_count_plans(runs, b->run) == 1;
}

/* ---- The winner of a budget ---- */

static void put_name(FILE *out, const json_t *run)
{
    char strategy[64], name[256];
    fprintf(out, "%s %s", slc_bench_labelled(slc_bench_strategy(run, strategy), run, name),
            slc_bench_text(run, "schedule"));
}

/* Names the rivals that have one and the same plan as the first (`same`), or those of the others whose intervals touch
 * the first one's. Returns how many there are. */
static size_t put_names(FILE *out, const json_t *runs, const rival *rivals, size_t count, bool same, const char *before)
{
    size_t named = 0;
    for (size_t i = 1; i < count; i++) {
        const bool one = are_one(runs, &rivals[0], &rivals[i]);
        if (one != same || (!same && slc_bench_spreads_apart(&rivals[0].step, &rivals[i].step))) continue;
        if (named < NAMED_MAX && out) {
            fputs(named ? ", " : before, out);
            put_name(out, rivals[i].run);
            if (!same) fprintf(out, " %.1f ms", rivals[i].step.median * 1e3);
        }
        named++;
    }
    if (named > NAMED_MAX && out) fprintf(out, " and %zu more", named - NAMED_MAX);
    return named;
}

static void show_winner(FILE *out, const json_t *runs, const rival *rivals, size_t count)
{
    char strategy[64];
    const rival *best = &rivals[0];
    const size_t near = put_names(NULL, runs, rivals, count, false, "");
    fprintf(out, "  throttle %-12s budget %-10s ", slc_bench_text(best->run, "throttle"),
            slc_bench_text(best->run, "budget"));
    if (!near) {
        fprintf(out, "%-14s %-12s %-10s %9.1f ms %9.1f MiB", slc_bench_text(best->run, "optimizer"),
                slc_bench_strategy(best->run, strategy), slc_bench_text(best->run, "schedule"), best->step.median * 1e3,
                slc_bench_number(best->run, "peak_bytes") / 0x1p20);
        if (*slc_bench_text(best->run, "label")) fprintf(out, " (%s)", slc_bench_text(best->run, "label"));
    } else {
        fputs(best->step.count > 1 ? "no winner: " : "not repeated, so no winner: ", out);
        put_name(out, best->run);
        fprintf(out, " %.1f ms", best->step.median * 1e3);
        put_names(out, runs, rivals, count, false, ", ");
    }
    put_names(out, runs, rivals, count, true, "; of the same plan: ");
    fputc('\n', out);
}

void slc_bench_winners_show(FILE *out, const json_t *runs)
{
    for (size_t i = 0; i < json_array_size(runs); i++) {
        size_t count;
        if (!slc_bench_is_first(runs, i, budget_keys)) continue;
        rival *rivals = gather_rivals(runs, json_array_get(runs, i), budget_keys, NULL, &count);
        if (count) show_winner(out, runs, rivals, count);
        free(rivals);
    }
}

/* ---- auto beside uniform strategies ---- */

static bool is_uniform(const json_t *run)
{
    slc_strategy strategy;
    return slc_strategy_parse(slc_bench_text(run, "strategy"), &strategy);
}

typedef struct {
    double gains; /* of those that differ */
    uint32_t differ, alike, alone, unknown;
} comparison;

static void compare_rivals(FILE *out, const json_t *runs, const rival *ours, const rival *theirs, comparison *c)
{
    const double gain = 1 - ours->step.median / theirs->step.median;
    fprintf(out, "%-4s %-9s %8.1f ms: ", slc_bench_text(theirs->run, "strategy"),
            slc_bench_text(theirs->run, "schedule"), theirs->step.median * 1e3);
    if (are_one(runs, ours, theirs)) {
        fprintf(out, "the same plan\n");
        c->alike++;
    } else if (ours->step.count < 2 || theirs->step.count < 2) {
        fprintf(out, "not repeated\n");
        c->unknown++;
    } else if (!slc_bench_spreads_apart(&ours->step, &theirs->step)) {
        fprintf(out, "no difference (+-%.1f and +-%.1f ms)\n", 1e3 * slc_bench_spread_half(&ours->step),
                1e3 * slc_bench_spread_half(&theirs->step));
        c->alike++;
    } else {
        fprintf(out, "%5.1f %% %s\n", 100 * fabs(gain), gain >= 0 ? "faster" : "slower");
        c->gains += gain;
        c->differ++;
    }
}

static void compare_budget(FILE *out, const json_t *runs, const json_t *like, comparison *c)
{
    char strategy[64];
    size_t ours_count, theirs_count;
    rival *ours = gather_rivals(runs, like, beside_keys, slc_bench_is_auto, &ours_count);
    rival *theirs = gather_rivals(runs, like, beside_keys, is_uniform, &theirs_count);
    if (ours_count) {
        fprintf(out, "  throttle %-8s budget %-10s %s %8.1f ms, ", slc_bench_text(like, "throttle"),
                slc_bench_text(like, "budget"), slc_bench_strategy(ours[0].run, strategy), ours[0].step.median * 1e3);
        if (theirs_count) {
            compare_rivals(out, runs, &ours[0], &theirs[0], c);
        } else {
            fprintf(out, "no uniform strategy fits\n");
            c->alone++;
        }
    }
    free(ours);
    free(theirs);
}

void slc_bench_auto_show(FILE *out, const json_t *runs)
{
    comparison c = {0};
    bool any = false;
    for (size_t i = 0; i < json_array_size(runs); i++) any |= slc_bench_is_auto(json_array_get(runs, i));
    if (!any) return;
    fprintf(out, "\nauto beside the fastest uniform strategy of each budget\n");
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (slc_bench_is_first(runs, i, beside_keys)) compare_budget(out, runs, json_array_get(runs, i), &c);
    if (c.differ)
        fprintf(out, "  in the mean %.1f %% %s at %u budget%s where they differ\n", 100 * fabs(c.gains) / c.differ,
                c.gains >= 0 ? "faster" : "slower", c.differ, c.differ == 1 ? "" : "s");
    if (c.alike) fprintf(out, "  no difference at %u\n", c.alike);
    if (c.alone) fprintf(out, "  at %u only auto fits\n", c.alone);
    if (c.unknown) fprintf(out, "  at %u nobody knows without repetitions: --repeat 3\n", c.unknown);
}
