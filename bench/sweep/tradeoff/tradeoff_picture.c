/* The picture of a trade-off: step time against the share that strategies get.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/cli/output/gnuplot.h"
#include "bench/sweep/results.h"
#include "bench/sweep/tradeoff/tradeoff_results.h"

#include <math.h>
#include <string.h>

typedef struct {
    double low_ms, high_ms;
    size_t misfits, measured;
} extent;

typedef struct {
    const json_t *document;
    extent extent;
} drawing;

static bool fits(const json_t *row)
{
    return json_is_true(json_object_get(row, "fits"));
}

static void widen(extent *e, const json_t *row)
{
    static const char *const keys[] = {"predicted_step_s", "step_s"};
    for (int k = 0; k < 2; k++) {
        double ms = slc_bench_number(row, keys[k]) * 1e3;
        if (isnan(ms)) continue;
        e->low_ms = fmin(e->low_ms, ms);
        e->high_ms = fmax(e->high_ms, ms);
        e->measured += k;
    }
    e->misfits += !fits(row);
}

static extent measure(const json_t *document)
{
    extent e = {INFINITY, 0, 0, 0};
    const json_t *points = json_object_get(document, "points");
    for (size_t i = 0; i < json_array_size(points); i++) widen(&e, json_array_get(points, i));
    widen(&e, json_object_get(document, "joint"));
    double room = fmax(e.high_ms - e.low_ms, 0.02 * e.high_ms);
    e.low_ms -= 0.3 * room;
    e.high_ms += 0.15 * room;
    return e;
}

/* ---- Table ---- */

static void put_row(FILE *file, const json_t *row)
{
    fprintf(file, "%.3f", 100 * slc_bench_number(row, "share"));
    slc_bench_put_number(file, 0, 4, slc_bench_number(row, "predicted_step_s") * 1e3, "?");
    slc_bench_put_number(file, 0, 4, slc_bench_number(row, "step_s") * 1e3, "?");
    fputc('\n', file);
}

static void put_table(FILE *file, const void *what)
{
    const drawing *d = what;
    const json_t *document = d->document;
    const extent *e = &d->extent;
    const json_t *points = json_object_get(document, "points");
    fputs("# share %, predicted ms, measured ms\n", file);
    for (size_t i = 0; i < json_array_size(points); i++)
        if (fits(json_array_get(points, i)) && json_is_null(json_object_get(json_array_get(points, i), "same_as")))
            put_row(file, json_array_get(points, i));
    fputs("\n\n# the joint plan\n", file);
    put_row(file, json_object_get(document, "joint"));
    fputs("\n\n# shares that do not fit\n", file);
    for (size_t i = 0; i < json_array_size(points); i++)
        if (!fits(json_array_get(points, i)))
            fprintf(file, "%.3f %.4f\n", 100 * slc_bench_number(json_array_get(points, i), "share"),
                    e->low_ms + 0.06 * (e->high_ms - e->low_ms));
}

/* ---- Script ---- */

static void put_title(FILE *file, const json_t *document)
{
    const char *throttle = slc_bench_text(document, "throttle"), *shape = slc_bench_text(document, "measured_shape");
    fputs("  set title '", file);
    slc_gnuplot_put_quoted(file, slc_bench_text(document, "model"));
    fprintf(file, ", %.0f ranks", slc_bench_number(document, "world"));
    if (*throttle) fputs(", throttle ", file);
    slc_gnuplot_put_quoted(file, throttle);
    fprintf(file, ": budget %.1f MiB, of which %.1f are free'.\"\\n\".'predicted: %s",
            slc_bench_number(document, "budget_bytes") / 0x1p20, slc_bench_number(document, "free_bytes") / 0x1p20,
            slc_bench_text(document, "predicted_shape"));
    if (*shape) fprintf(file, "; measured: %s", shape);
    fputs("'\n", file);
}

static void put_plots(FILE *file, const extent *e)
{
    const struct {
        bool drawn;
        const char *what, *style, *title;
    } plots[] = {
        {true, "0 using 1:2 smooth unique", "linespoints lc rgb '#1f77b4' dt 2 pt 6 ps 1 lw 1.5", "predicted"},
        {e->measured, "0 using 1:3 smooth unique", "linespoints lc rgb '#1f77b4' pt 7 ps 1 lw 3", "measured"},
        {true, "1 using 1:2", "points lc rgb '#d62728' pt 4 ps 2 lw 2", "joint plan, predicted"},
        {e->measured, "1 using 1:3", "points lc rgb '#d62728' pt 5 ps 2", "joint plan, measured"},
        {e->misfits, "2 using 1:2", "points lc rgb 'gray40' pt 2 ps 1.2", "does not fit"},
    };
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++)
        if (plots[i].drawn)
            fprintf(file, "%s data index %s with %s title '%s'", i ? ", \\\n      " : "  plot", plots[i].what,
                    plots[i].style, plots[i].title);
    fputc('\n', file);
}

static void put_script(FILE *file, const void *what)
{
    const drawing *d = what;
    const json_t *document = d->document;
    const extent *e = &d->extent;
    double joint = 100 * slc_bench_number(json_object_get(document, "joint"), "share");
    slc_gnuplot_begin(file, "tradeoff", 960, 480);
    fputs("  set key outside right top\n"
          "  set xlabel 'share of the free memory that strategies have, % (the rest is the schedule''s)'\n"
          "  set ylabel 'step, ms'\n",
          file);
    fprintf(file, "  set xrange [-3:%.1f]\n  set yrange [%.4f:%.4f]\n", fmax(103, joint + 3), e->low_ms, e->high_ms);
    fprintf(file, "  set arrow 1 from %.3f, graph 0 to %.3f, graph 1 nohead lc rgb '#d62728' dt 3\n", joint, joint);
    put_title(file, document);
    put_plots(file, e);
    fputs("  unset output\n}\n", file);
}

sluice_status slc_tradeoff_draw(const json_t *document, const char *folder, FILE *out)
{
    const drawing d = {document, measure(document)};
    sluice_status status = slc_gnuplot_write(folder, "tradeoff.dat", put_table, &d);
    if (!status) status = slc_gnuplot_write(folder, "tradeoff.gp", put_script, &d);
    if (!status) status = slc_gnuplot_draw(folder, "tradeoff", out);
    return status;
}
