/* tests/command/measure/bench_pipeline_test.sh covers this file. */
#include "bench/sweep/figures/figures.h"

#include "bench/cli/output/gnuplot.h"
#include "bench/sweep/figures/spread.h"
#include "lib/base/status.h"

#include <math.h>

static const char *const number_keys[] = {"step_micro_batches", NULL};
static const char *const panel_keys[] = {"throttle", "budget", NULL};
/* All that a label can tell but the micro-batches themselves. */
static const char *const line_keys[] = {
    "throttle",           "budget",      "strategy",       "schedule",           "optimizer", "tied", "world", "source",
    "settings.precision", "settings.lr", "settings.batch", "settings.recompute", NULL};
enum { PANEL_HEIGHT = 400, PICTURE_WIDTH = 960 };

static const json_t *row_at(const json_t *runs, size_t index)
{
    return json_array_get(runs, index);
}

/* Returns true if the row is the first of those that are alike under two lists of keys. */
static bool is_first_point(const json_t *runs, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (slc_bench_alike(row_at(runs, i), row_at(runs, index), line_keys) &&
            slc_bench_alike(row_at(runs, i), row_at(runs, index), number_keys))
            return false;
    return true;
}

static void put_line(FILE *file, const json_t *runs, size_t line)
{
    const json_t *like = row_at(runs, line);
    char strategy[64];
    fprintf(file, "# throttle %s, %s, schedule %s: micro-batches of a step, step ms, predicted step ms, least, most\n",
            slc_bench_text(like, "throttle"), slc_bench_strategy(like, strategy), slc_bench_text(like, "schedule"));
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = row_at(runs, i);
        if (!slc_bench_alike(run, like, line_keys) || !is_first_point(runs, i)) continue;
        fprintf(file, "%.0f", slc_bench_number(run, "step_micro_batches"));
        slc_bench_put_step(file, runs, run, slc_bench_cell_keys);
        fputc('\n', file);
    }
    fputs("\n\n", file);
}

static void put_data(FILE *file, const void *what)
{
    const json_t *runs = what;
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (slc_bench_is_first(runs, i, line_keys)) put_line(file, runs, i);
}

static bool is_predicted(const json_t *runs, const json_t *line)
{
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (slc_bench_alike(row_at(runs, i), line, line_keys) &&
            !isnan(slc_bench_number(row_at(runs, i), "predicted_step_s")))
            return true;
    return false;
}

static void put_title(FILE *file, const json_t *run, const char *more)
{
    char strategy[64];
    fputs(" title '", file);
    slc_gnuplot_put_quoted(file, slc_bench_strategy(run, strategy));
    fputc(' ', file);
    slc_gnuplot_put_quoted(file, slc_bench_text(run, "schedule"));
    fprintf(file, "%s'", more);
}

static void put_panel(FILE *file, const json_t *runs, const json_t *panel)
{
    const char *before = "  plot ";
    int line = -1;
    fputs("  set title 'throttle ", file);
    slc_gnuplot_put_quoted(file, slc_bench_text(panel, "throttle"));
    fputs(", budget ", file);
    slc_gnuplot_put_quoted(file, slc_bench_text(panel, "budget"));
    fputs("'\n", file);
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = row_at(runs, i);
        if (!slc_bench_is_first(runs, i, line_keys)) continue;
        line++;
        if (!slc_bench_alike(run, panel, panel_keys)) continue;
        fprintf(file, "%sdata index %d using 1:2:4:5 with yerrorlines lc %d pt %d lw 1.5", before, line, line + 1,
                line + 4);
        put_title(file, run, "");
        before = ", \\\n       ";
        if (!is_predicted(runs, run)) continue;
        fprintf(file, "%sdata index %d using 1:3 with lines lc %d dt 3", before, line, line + 1);
        put_title(file, run, ", predicted");
    }
    fputc('\n', file);
}

static void put_script(FILE *file, const void *what)
{
    const json_t *runs = what;
    int panels = 0;
    for (size_t i = 0; i < json_array_size(runs); i++) panels += slc_bench_is_first(runs, i, panel_keys);
    slc_gnuplot_begin(file, "micro_batches", PICTURE_WIDTH, PANEL_HEIGHT * panels);
    fprintf(file,
            "  set multiplot layout %d,1\n  set key outside right top\n  set logscale x 2\n"
            "  set xlabel 'micro-batches of a step, all ranks together'\n  set ylabel 'step, ms'\n  set yrange [0:*]\n",
            panels);
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (slc_bench_is_first(runs, i, panel_keys)) put_panel(file, runs, row_at(runs, i));
    fputs("  unset multiplot\n  unset output\n}\n", file);
}

/* The complete runs with a step time; borrowed references. NULL without memory. */
static json_t *timed_runs(const slc_bench_results *results)
{
    json_t *runs = json_array(), *run;
    size_t index;
    json_array_foreach (results->runs, index, run) {
        if (slc_bench_complete(run) && !isnan(slc_bench_number(run, "step_s"))) json_array_append(runs, run);
    }
    return runs;
}

sluice_status slc_bench_micro_batches_draw(const slc_bench_results *results, const char *folder, FILE *out)
{
    json_t *runs = timed_runs(results);
    size_t numbers = 0;
    sluice_status status = runs ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "picture");
    for (size_t i = 0; i < json_array_size(runs); i++) numbers += slc_bench_is_first(runs, i, number_keys);
    if (!status && numbers > 1) status = slc_gnuplot_write(folder, "micro_batches.dat", put_data, runs);
    if (!status && numbers > 1) status = slc_gnuplot_write(folder, "micro_batches.gp", put_script, runs);
    json_decref(runs);
    return status || numbers < 2 ? status : slc_gnuplot_draw(folder, "micro_batches", out);
}
