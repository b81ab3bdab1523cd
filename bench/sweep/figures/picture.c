/* Writes the table and the script, and runs gnuplot. A run without a budget is drawn at the right edge, under
 * "none".
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/figures/figures.h"

#include "bench/cli/output/gnuplot.h"
#include "bench/sweep/figures/spread.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const throttle_keys[] = {"throttle", NULL};
static const char *const line_keys[] = {"throttle", "strategy", "schedule", "tied", "label", NULL};
static const char *const point_keys[] = {"throttle", "strategy", "schedule", "tied", "label", "budget", NULL};
static const char *const colour_keys[] = {"strategy", "tied", "label", NULL};
static const char *const dash_keys[] = {"schedule", NULL};

enum { PANEL_HEIGHT = 360, PICTURE_WIDTH = 960 };
/* Columns of the table. After the step time come the columns of the prediction and of the range of repetitions. */
typedef enum { STEP_COLUMN = 2, PEAK_COLUMN = 6 } table_column;

typedef struct {
    json_t *runs; /* complete ones with a step time; borrowed references */
    double least_mib, largest_mib;
    bool unlimited; /* some run had no budget */
    double none_at_mib;
    double *heights; /* of the panel whose first run has this number; 0: gnuplot's own choice */
} picture;

static json_t *row_at(const picture *p, size_t index)
{
    return json_array_get(p->runs, index);
}

/* Counts the different rows before the one that `row` equals. */
static int number_of(const picture *p, const json_t *row, const char *const *keys)
{
    int number = 0;
    for (size_t i = 0; i < json_array_size(p->runs) && !slc_bench_alike(row_at(p, i), row, keys); i++)
        number += slc_bench_is_first(p->runs, i, keys);
    return number;
}

static sluice_status find_ranges(const slc_bench_results *results, picture *p)
{
    size_t index;
    json_t *run;
    *p = (picture){.runs = json_array(), .least_mib = INFINITY};
    json_array_foreach (results->runs, index, run) {
        if (!slc_bench_complete(run) || isnan(slc_bench_number(run, "step_s"))) continue;
        if (json_array_append(p->runs, run)) return slc_error(SLUICE_ERR_MEMORY, "picture");
        double budget = slc_bench_number(run, "budget_bytes"), peak = slc_bench_number(run, "peak_bytes");
        p->unlimited |= isnan(budget);
        p->least_mib = fmin(p->least_mib, fmin(isnan(budget) ? INFINITY : budget, peak) / 0x1p20);
        p->largest_mib = fmax(p->largest_mib, fmax(isnan(budget) ? 0 : budget, peak) / 0x1p20);
    }
    p->none_at_mib = 1.08 * p->largest_mib;
    return p->runs ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "picture");
}

/* ---- Table ---- */

static void put_points(FILE *file, const picture *p, size_t line)
{
    const json_t *like = row_at(p, line);
    char strategy[64];
    fprintf(file,
            "# throttle %s, strategy %s, schedule %s: budget MiB, step ms, predicted step ms, fastest and "
            "slowest repetition's step ms, peak MiB\n",
            slc_bench_text(like, "throttle"), slc_bench_strategy(like, strategy), slc_bench_text(like, "schedule"));
    for (size_t i = 0; i < json_array_size(p->runs); i++) {
        const json_t *run = row_at(p, i);
        if (!slc_bench_alike(run, like, line_keys) || !slc_bench_is_first(p->runs, i, point_keys)) continue;
        double budget = slc_bench_number(run, "budget_bytes");
        fprintf(file, "%.3f", isnan(budget) ? p->none_at_mib : budget / 0x1p20);
        slc_bench_put_step(file, p->runs, run, point_keys);
        fprintf(file, " %.3f\n", slc_bench_number(run, "peak_bytes") / 0x1p20);
    }
    fputs("\n\n", file);
}

static void put_table(FILE *file, const void *what)
{
    const picture *p = what;
    for (size_t i = 0; i < json_array_size(p->runs); i++)
        if (slc_bench_is_first(p->runs, i, line_keys)) put_points(file, p, i);
}

/* ---- Script ---- */

static bool is_split(const json_t *run)
{
    return !strcmp(slc_bench_text(run, "tied"), "split");
}

/* Uniform strategies have quiet colours; auto, which chooses by itself, stands out. */
static const char *colour_of(const picture *p, const json_t *run)
{
    static const char *const colours[] = {"#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"};
    if (slc_bench_is_auto(run) && !*slc_bench_text(run, "label")) return is_split(run) ? "#e377c2" : "#d62728";
    return colours[number_of(p, run, colour_keys) % 7];
}

static void put_style(FILE *file, const picture *p, const json_t *run)
{
    int dash = number_of(p, run, dash_keys) + 1, number = number_of(p, run, colour_keys);
    fprintf(file, "lc rgb '%s' ", colour_of(p, run));
    if (slc_bench_is_auto(run))
        fputs("dt 1 pt 7 ps 1.1 lw 4", file);
    else
        fprintf(file, "dt %d pt %d ps 0.8 lw 1.5", dash, number + 4);
}

static void put_title(FILE *file, const json_t *run, bool schedules)
{
    char strategy[64], title[256];
    fputs(" title '", file);
    slc_gnuplot_put_quoted(file, slc_bench_labelled(slc_bench_strategy(run, strategy), run, title));
    if (schedules) {
        fputc(' ', file);
        slc_gnuplot_put_quoted(file, slc_bench_text(run, "schedule"));
    }
    fputc('\'', file);
}

static bool has_prediction(const picture *p, const json_t *line)
{
    for (size_t i = 0; i < json_array_size(p->runs); i++)
        if (slc_bench_alike(row_at(p, i), line, line_keys) &&
            !isnan(slc_bench_number(row_at(p, i), "predicted_step_s")))
            return true;
    return false;
}

static bool is_repeated(const picture *p, const json_t *line)
{
    for (size_t i = 0; i < json_array_size(p->runs); i++)
        if (slc_bench_alike(row_at(p, i), line, line_keys) && slc_bench_number(row_at(p, i), "repeat") > 1) return true;
    return false;
}

/* ---- The range of step times ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Finds the height of a throttle's panel, in ms. A point is far if it is above three times the third quartile of the
 * points. If points, or the bars of repetitions, are far, the panel has no room for them, because it would show the
 * others as one flat line. 0: there is room for all. */
static sluice_status find_height(const picture *p, const json_t *panel, double *height)
{
    static const double FAR = 3, MARGIN = 1.1;
    const size_t all = json_array_size(p->runs);
    double *values = calloc(all + 1, sizeof *values), most = 0;
    size_t count = 0;
    *height = 0;
    if (!values) return slc_error(SLUICE_ERR_MEMORY, "picture");
    for (size_t i = 0; i < all; i++) {
        if (!slc_bench_alike(row_at(p, i), panel, throttle_keys) || !slc_bench_is_first(p->runs, i, point_keys))
            continue;
        const slc_bench_spread step = slc_bench_spread_of(p->runs, row_at(p, i), point_keys, "step_s");
        values[count++] = 1e3 * step.median;
        most = fmax(most, 1e3 * step.most);
    }
    qsort(values, count, sizeof *values, by_size);
    const double far = count ? FAR * values[(count - 1) * 3 / 4] : 0;
    while (count && values[count - 1] > far) count--;
    if (count && most > far) *height = MARGIN * values[count - 1];
    free(values);
    return SLUICE_OK;
}

/* Points above the panel stand at its edge, with their step times. */
static void put_above(FILE *file, const picture *p, const json_t *run, int line, double height)
{
    fprintf(
        file,
        ", \\\n     data index %d using 1:($2 > %.3f ? %.3f : 1/0):(sprintf('%%.0f', $2)) with labels point pt 9 lc "
        "rgb '%s' offset 0,-1 notitle",
        line, height, 0.97 * height, colour_of(p, run));
}

/* Draws the lines of one throttle: step times with the range of their repetitions and with their predictions, or peaks
 * of memory. */
static void put_plot(FILE *file, const picture *p, const json_t *panel, table_column column, double height)
{
    const char *before =
        column == PEAK_COLUMN ? "plot x with lines lc rgb 'gray50' dt 2 title 'peak = budget', \\\n" : "plot ";
    int line = -1;
    bool schedules = false;
    char strategy[64], title[256];
    for (size_t i = 0; i < json_array_size(p->runs); i++) schedules |= number_of(p, row_at(p, i), dash_keys) > 0;
    for (size_t i = 0; i < json_array_size(p->runs); i++) {
        const json_t *run = row_at(p, i);
        if (!slc_bench_is_first(p->runs, i, line_keys)) continue;
        line++;
        if (!slc_bench_alike(run, panel, throttle_keys)) continue;
        fprintf(file, "%s     data index %d using 1:%d smooth unique with linespoints ", before, line, column);
        put_style(file, p, run);
        put_title(file, run, schedules);
        before = ", \\\n";
        if (column == STEP_COLUMN && is_repeated(p, run)) {
            fprintf(file, "%s     data index %d using 1:2:4:5 with yerrorbars lc rgb '%s'", before, line,
                    colour_of(p, run));
            fputs(" pt 0 lw 1 notitle", file);
        }
        if (height > 0) put_above(file, p, run, line, height);
        if (column != STEP_COLUMN || !has_prediction(p, run)) continue;
        fprintf(file, "%s     data index %d using 1:3 smooth unique with lines lc rgb 'black' dt 3 lw 1", before, line);
        fputs(" title '", file);
        slc_gnuplot_put_quoted(file, slc_bench_labelled(slc_bench_strategy(run, strategy), run, title));
        fputs(", predicted'", file);
    }
    fputc('\n', file);
}

static void put_panels(FILE *file, const picture *p)
{
    fputs("  set ylabel 'step, ms'\n", file);
    for (size_t i = 0; i < json_array_size(p->runs); i++) {
        if (!slc_bench_is_first(p->runs, i, throttle_keys)) continue;
        const double height = p->heights[i];
        if (height > 0)
            fprintf(file, "  set yrange [0:%.3f]\n", height);
        else
            fputs("  set yrange [0:*]\n", file);
        fputs("  set title 'step time, throttle ", file);
        slc_gnuplot_put_quoted(file, slc_bench_text(row_at(p, i), "throttle"));
        fputs("'\n", file);
        put_plot(file, p, row_at(p, i), STEP_COLUMN, height);
    }
    fputs("  set ylabel 'peak, MiB'\n  set title 'peak memory'\n  set yrange [0:*]\n", file);
    put_plot(file, p, row_at(p, 0), PEAK_COLUMN, 0);
}

static void put_script(FILE *file, const void *what)
{
    const picture *p = what;
    int panels = 1;
    for (size_t i = 0; i < json_array_size(p->runs); i++) panels += slc_bench_is_first(p->runs, i, throttle_keys);
    const json_t *run = row_at(p, 0);
    slc_gnuplot_begin(file, "step_time", PICTURE_WIDTH, PANEL_HEIGHT * panels);
    fprintf(file,
            "  set multiplot layout %d,1\n"
            "  set key outside right top\n  set lmargin 10\n  set rmargin 24\n  set bmargin 4\n"
            "  set xlabel 'budget, MiB'\n  set xrange [%.3f:%.3f]\n",
            panels, 0.9 * p->least_mib, (p->unlimited ? p->none_at_mib : p->largest_mib) * 1.03);
    if (p->unlimited) fprintf(file, "  set xtics add (\"\\nnone\" %.3f)\n", p->none_at_mib);
    fputs("  # ", file);
    slc_gnuplot_put_quoted(file, slc_bench_text(run, "model"));
    fputc(' ', file);
    slc_gnuplot_put_quoted(file, slc_bench_text(run, "size"));
    fputc('\n', file);
    put_panels(file, p);
    fputs("  unset multiplot\n  unset output\n}\n", file);
}

/* ---- Drawing ---- */

sluice_status slc_bench_picture_draw(const slc_bench_results *results, const char *folder, FILE *out)
{
    picture p;
    sluice_status status = find_ranges(results, &p);
    bool empty = json_array_size(p.runs) == 0;
    p.heights = calloc(json_array_size(p.runs) + 1, sizeof *p.heights);
    if (!status && !p.heights) status = slc_error(SLUICE_ERR_MEMORY, "picture");
    for (size_t i = 0; !status && i < json_array_size(p.runs); i++)
        if (slc_bench_is_first(p.runs, i, throttle_keys)) status = find_height(&p, row_at(&p, i), &p.heights[i]);
    if (!status && !empty) status = slc_gnuplot_write(folder, "step_time.dat", put_table, &p);
    if (!status && !empty) status = slc_gnuplot_write(folder, "step_time.gp", put_script, &p);
    json_decref(p.runs);
    free(p.heights);
    if (status || empty) return status;

    return slc_gnuplot_draw(folder, "step_time", out);
}
