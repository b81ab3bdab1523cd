/* Table and picture of a comparison of optimizers and recipes. Repeated runs have the same losses, so the picture shows
 * the first of them; the table's times are medians. tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/figures/figures.h"

#include "bench/cli/output/gnuplot.h"
#include "bench/sweep/case_log.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const group_keys[] = {
    "throttle", "budget", "world", "settings.batch", "settings.precision", "settings.recompute", NULL};
static const char *const line_keys[] = {"throttle", "optimizer", "strategy", "tied", "label", NULL};
static const char *const colour_keys[] = {"optimizer", "settings.lr", "recipe_file", NULL};
static const char *const name_keys[] = {"optimizer", "settings.lr", "recipe_file", "strategy", "tied", NULL};
static const char *const throttle_keys[] = {"throttle", NULL};

enum { PANEL_HEIGHT = 400, PICTURE_WIDTH = 960 };

static const json_t *row_at(const json_t *runs, size_t index)
{
    return json_array_get(runs, index);
}

/* True if the run is complete, and the first of those that are alike under `keys`. Only the last run of all may be
 * incomplete. */
static bool is_first(const json_t *runs, size_t index, const char *const *keys)
{
    return slc_bench_complete(row_at(runs, index)) && slc_bench_is_first(runs, index, keys);
}

/* Counts the runs before number `end` for which is_first is true. */
static size_t count_first(const json_t *runs, size_t end, const char *const *keys)
{
    size_t count = 0;
    for (size_t i = 0; i < end; i++) count += is_first(runs, i, keys);
    return count;
}

bool slc_bench_losses_compare(const slc_bench_results *results)
{
    return count_first(results->runs, json_array_size(results->runs), colour_keys) > 1;
}

/* ---- Table ---- */

static void show_run(FILE *out, const json_t *runs, const json_t *run, double reference)
{
    double loss = slc_bench_number(run, "final_loss");
    char strategy[64], name[256];
    fprintf(out, "  %-14s %-12s", slc_bench_labelled(slc_bench_text(run, "optimizer"), run, name),
            slc_bench_strategy(run, strategy));
    fprintf(out, " %8.4f %9.2f %%", loss, 100 * loss / reference);
    slc_bench_put_number(out, 7, 0, slc_bench_number(run, "freeze_step"), "-");
    slc_bench_put_number(out, 9, 1, slc_bench_median(runs, run, slc_bench_cell_keys, "warm_up.step_s") * 1e3, "-");
    slc_bench_put_number(out, 9, 1, slc_bench_median(runs, run, slc_bench_cell_keys, "compressed.step_s") * 1e3, "-");
    slc_bench_put_number(out, 9, 3, slc_bench_median(runs, run, slc_bench_cell_keys, "warm_up.bytes_sent") / 1e6, "-");
    slc_bench_put_number(out, 9, 3, slc_bench_median(runs, run, slc_bench_cell_keys, "compressed.bytes_sent") / 1e6,
                         "-");
    slc_bench_put_number(out, 9, 1, slc_bench_median(runs, run, slc_bench_cell_keys, "train_s"), "-");
    fputc('\n', out);
}

static void show_group(FILE *out, const json_t *runs, const json_t *first)
{
    double reference = slc_bench_number(first, "final_loss");
    fprintf(out, "\noptimizers, throttle %s, budget %s; loss: the mean of the last tenth of the steps\n",
            slc_bench_text(first, "throttle"), slc_bench_text(first, "budget"));
    fprintf(out, "  %-14s %-12s %8s %11s %7s %9s %9s %9s %9s %9s\n", "", "", "", "of the", "warm-up",
            "step ms:", "com-", "MB sent:", "com-", "all");
    fprintf(out, "  %-14s %-12s %8s %11s %7s %9s %9s %9s %9s %9s\n", "optimizer", "strategy", "loss", "first", "steps",
            "warm-up", "pressed", "warm-up", "pressed", "steps s");
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (is_first(runs, i, slc_bench_cell_keys) && slc_bench_alike(row_at(runs, i), first, group_keys))
            show_run(out, runs, row_at(runs, i), reference);
}

void slc_bench_losses_show(FILE *out, const slc_bench_results *results)
{
    const json_t *runs = results->runs;
    if (!slc_bench_losses_compare(results)) return;
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (is_first(runs, i, group_keys)) show_group(out, runs, row_at(runs, i));
    fflush(out);
}

/* ---- Points ---- */

static double loss_at(const json_t *run, size_t step)
{
    const json_t *loss = json_array_get(json_object_get(run, "losses"), step);
    return json_is_number(loss) ? json_number_value(loss) : NAN;
}

static size_t step_count(const json_t *run)
{
    return json_array_size(json_object_get(run, "losses"));
}

/* The mean over a fiftieth of the steps around this one, because the loss of a single batch is noise. */
static double smooth_loss(const json_t *run, size_t step)
{
    size_t count = step_count(run), half = count / 100, n = 0;
    double sum = 0;
    for (size_t i = step > half ? step - half : 0; i <= step + half && i < count; i++, n++) sum += loss_at(run, i);
    return sum / (double)n;
}

static double elapsed_at(const json_t *run, size_t step)
{
    return json_number_value(json_array_get(json_object_get(run, "elapsed_s"), step));
}

/* Returns the steps from one point of the losses to the next; results of earlier versions have every step, and do not
 * say so. */
static size_t steps_a_point(const json_t *run)
{
    const json_int_t every = json_integer_value(json_object_get(run, "losses_every"));
    return every > 0 ? (size_t)every : 1;
}

/* Tokens of all ranks up to a point; NaN: results of earlier versions do not say so. */
static double tokens_at(const json_t *run, size_t step)
{
    const json_t *tokens = json_array_get(json_object_get(run, "tokens_seen"), step);
    return json_is_number(tokens) ? json_number_value(tokens) : NAN;
}

static void put_point(FILE *file, const json_t *run, size_t step)
{
    fprintf(file, "%zu %.4f", step * steps_a_point(run) + 1, elapsed_at(run, step));
    slc_bench_put_number(file, 0, 6, smooth_loss(run, step), "?");
    slc_bench_put_number(file, 0, 0, tokens_at(run, step), "?");
    fputc('\n', file);
}

/* Returns true if the run freezes after its start, so that there is a point to mark. */
static bool freezes(const json_t *run)
{
    return slc_bench_number(run, "freeze_step") >= 1;
}

/* Writes two blocks for each line: its points, then the point of its freeze. */
static void put_table(FILE *file, const void *what)
{
    const json_t *runs = what;
    char strategy[64];
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = row_at(runs, i);
        if (!is_first(runs, i, line_keys)) continue;
        fprintf(file, "# throttle %s, optimizer %s, strategy %s: step, seconds, loss, tokens\n",
                slc_bench_text(run, "throttle"), slc_bench_text(run, "optimizer"), slc_bench_strategy(run, strategy));
        for (size_t step = 0; step < step_count(run); step++) put_point(file, run, step);
        fputs("\n\n# its freeze\n", file);
        if (freezes(run))
            put_point(file, run, (size_t)slc_bench_number(run, "freeze_step") - 1);
        else
            fputs("? ? ? ?\n", file); /* gnuplot would not count an empty block */
        fputs("\n\n", file);
    }
}

/* ---- Script ---- */

/* An optimizer's name is enough for a line's title if it has only one strategy. */
static bool names_strategy(const json_t *runs)
{
    size_t count = json_array_size(runs);
    return count_first(runs, count, name_keys) > count_first(runs, count, colour_keys);
}

static void put_line(FILE *file, const json_t *runs, size_t index, int column)
{
    static const char *const colours[] = {"#222222", "#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e"};
    const json_t *run = row_at(runs, index);
    char strategy[64], name[256];
    size_t block = 2 * count_first(runs, index, line_keys), same = 0, number = 0;
    for (size_t i = 0; !slc_bench_alike(row_at(runs, i), run, colour_keys); i++)
        number += is_first(runs, i, colour_keys);
    for (size_t i = 0; i < index; i++)
        same += is_first(runs, i, line_keys) && slc_bench_alike(row_at(runs, i), run, colour_keys) &&
                slc_bench_alike(row_at(runs, i), run, throttle_keys);
    fprintf(file, "     data index %zu using %d:3 with lines lc rgb '%s' dt %zu lw 2 title '", block, column,
            colours[number % 6], same + 1);
    slc_gnuplot_put_quoted(file, slc_bench_labelled(slc_bench_text(run, "optimizer"), run, name));
    if (names_strategy(runs)) fputc(' ', file);
    if (names_strategy(runs)) slc_gnuplot_put_quoted(file, slc_bench_strategy(run, strategy));
    fputc('\'', file);
    if (freezes(run))
        fprintf(file, ", \\\n     data index %zu using %d:3 with points pt 7 ps 1 lc rgb '%s' notitle", block + 1,
                column, colours[number % 6]);
}

/* Returns true if all runs say how many tokens they had seen. */
static bool have_tokens(const json_t *runs)
{
    bool all = true;
    for (size_t i = 0; i < json_array_size(runs); i++)
        all &= !slc_bench_complete(row_at(runs, i)) || !isnan(tokens_at(row_at(runs, i), 0));
    return all;
}

/* Draws one throttle's lines over column 1 (steps), 2 (seconds) or 4 (tokens). */
static void put_panel(FILE *file, const json_t *runs, const json_t *like, int column)
{
    const char *before = "  plot \\\n";
    fputs(column == 1   ? "  set xlabel 'step'\n  set title 'loss against step"
          : column == 4 ? "  set xlabel 'tokens'\n  set title 'loss against tokens"
                        : "  set xlabel 'seconds'\n  set title 'loss against time, throttle ",
          file);
    if (column == 2) slc_gnuplot_put_quoted(file, slc_bench_text(like, "throttle"));
    fputs("; a dot: compression begins'\n", file);
    for (size_t i = 0; i < json_array_size(runs); i++) {
        if (!is_first(runs, i, line_keys) || !slc_bench_alike(row_at(runs, i), like, throttle_keys)) continue;
        fputs(before, file);
        put_line(file, runs, i, column);
        before = ", \\\n";
    }
    fputc('\n', file);
}

/* Returns where the axis of losses ends: at the largest loss after the first steps, because all runs share the early
 * fall, which would hide the differences. */
static double highest(const json_t *runs)
{
    double high = 0;
    for (size_t i = 0; i < json_array_size(runs); i++)
        high = fmax(high, smooth_loss(row_at(runs, i), step_count(row_at(runs, i)) / 20));
    return high;
}

static void put_script(FILE *file, const void *what)
{
    const json_t *runs = what;
    const bool tokens = have_tokens(runs);
    size_t panels = 1 + tokens + count_first(runs, json_array_size(runs), throttle_keys);
    slc_gnuplot_begin(file, "losses", PICTURE_WIDTH, PANEL_HEIGHT * (int)panels);
    fprintf(file,
            "  set multiplot layout %zu,1\n  set key outside right top\n  set lmargin 10\n  set rmargin 24\n"
            "  set bmargin 4\n  set ylabel 'loss'\n",
            panels);
    if (highest(runs) > 0) fprintf(file, "  set yrange [*:%.4f]\n", highest(runs));
    bool steps = false;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        if (!is_first(runs, i, throttle_keys)) continue;
        if (!steps) put_panel(file, runs, row_at(runs, i), 1);
        if (!steps && tokens) put_panel(file, runs, row_at(runs, i), 4);
        steps = true;
        put_panel(file, runs, row_at(runs, i), 2);
    }
    fputs("  unset multiplot\n  unset output\n}\n", file);
}

sluice_status slc_bench_losses_draw(const slc_bench_results *results, const char *folder, FILE *out)
{
    if (!slc_bench_losses_compare(results)) return SLUICE_OK;
    json_t *runs = slc_case_logs_read(results->runs, folder);
    if (!runs) return slc_error(SLUICE_ERR_MEMORY, "the logs of a sweep");
    sluice_status status = slc_gnuplot_write(folder, "losses.dat", put_table, runs);
    json_decref(runs);
    if (!status) status = slc_gnuplot_write(folder, "losses.gp", put_script, results->runs);
    if (!status) status = slc_gnuplot_draw(folder, "losses", out);
    return status;
}
