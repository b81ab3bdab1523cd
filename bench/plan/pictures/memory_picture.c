/* tests/command/plan/memory_picture_test.sh covers this file. */
#include "bench/plan/pictures/memory_picture.h"

#include "bench/plan/pictures/memory_peak.h"
#include "bench/plan/pictures/picture.h"
#include "bench/plan/words/quantities.h"
#include "lib/base/status.h"
#include "lib/base/text/size_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { HEIGHT = 820, MOST_NAMES = 60, UPRIGHT_NAMES = 14 };
static const char unused_rgb[] = "#eeeeee";

typedef struct {
    const slc_profile *profile;
    const slc_plan *plan;
    double step_s;
    slc_memory_peak peak;
    slc_memory_curves curves;
    slc_picture_units units, bar_units;
    char title[320];
} drawing;

/* ---- Over time ---- */

static void plot_time(FILE *file, const drawing *d)
{
    char peak[160], where[96], at[24];
    const double at_s = d->peak.at_s / d->units.seconds, top = (double)d->peak.live_bytes / d->units.bytes;
    const bool late = d->peak.at_s > 0.6 * d->step_s;
    slc_memory_peak_name(&d->profile->job, &d->peak, where, sizeof where);
    snprintf(peak, sizeof peak, "peak: %s at %s, %s", slc_size_of(d->peak.live_bytes).text,
             slc_plan_seconds(d->peak.at_s, at), where);
    fputs("set title ", file);
    slc_picture_put_quoted(file, d->title);
    fprintf(file,
            " offset 0,-0.5\nset xrange [0:%.9g]\nset lmargin at screen 0.085\nset rmargin at screen 0.82\n"
            "set tmargin at screen 0.93\nset bmargin at screen 0.56\nset xlabel '%s' offset 0,0.5\n"
            "set grid xtics ytics lc rgb '#dddddd' back\n"
            "set key at screen 0.832, screen 0.93 left top Left reverse vertical samplen 2\n"
            "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead lc rgb 'black' lw 1.5 dt 3 front\n"
            "set label ",
            d->step_s / d->units.seconds, d->units.seconds_name, at_s, at_s);
    slc_picture_put_quoted(file, peak);
    fprintf(file,
            " at %.9g, %.9g %s offset %s,-0.9 front\n"
            "set object circle at %.9g, %.9g size screen 0.004 fs solid fc rgb 'black' front\n",
            at_s, top, late ? "right" : "left", late ? "-1.2" : "1.2", at_s, top);
    slc_memory_curves_plot(file, &d->curves, &d->units);
    fputs("unset arrow\nunset label\nunset object\nunset title\n", file);
}

/* ---- By layer ---- */

static uint64_t column_bytes(const slc_memory_column *column)
{
    uint64_t sum = column->unused;
    for (int c = 0; c < SLC_MEMORY_CATEGORIES; c++) sum += column->bytes[c];
    return sum;
}

static uint64_t highest_column(const slc_memory_peak *peak)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < peak->count; i++)
        most = (uint64_t)fmax((double)most, (double)column_bytes(&peak->columns[i]));
    return most;
}

/* Writes the block of boxes of one category, or that of the memory that is not in use. */
static bool put_boxes(FILE *file, const drawing *d, int colour)
{
    bool any = false;
    fprintf(file, "$bars%d << EOD\n", colour);
    for (uint32_t i = 0; i < d->peak.count; i++) {
        const slc_memory_column *column = &d->peak.columns[i];
        uint64_t below = 0, bytes = column->unused;
        for (int k = 0; k < colour && k < SLC_MEMORY_COLOURS; k++)
            below += column->bytes[slc_memory_colours[k].category];
        if (colour < SLC_MEMORY_COLOURS) bytes = column->bytes[slc_memory_colours[colour].category];
        if (!bytes) continue;
        any = true;
        fprintf(file, "%u 0 %.2f %.2f %.9g %.9g\n", i, i - 0.4, i + 0.4, (double)below / d->bar_units.bytes,
                (double)(below + bytes) / d->bar_units.bytes);
    }
    fputs("EOD\n", file);
    return any;
}

/* Writes the names of the columns. If there are many, only every second, third, ... has its name; the last two always
 * do. */
static void put_names(FILE *file, const drawing *d)
{
    const uint32_t count = d->peak.count, each = (count + MOST_NAMES - 1) / MOST_NAMES;
    fprintf(file, "set xtics scale 0 %s font ',9' (", count > UPRIGHT_NAMES ? "rotate by 60 right" : "norotate");
    const char *before = "";
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        if (i % each && i + 2 < count) continue;
        if (i + 2 < count && i + each > count - 2 && each > 1) continue; /* room for the last two */
        snprintf(name, sizeof name, "%.18s", d->peak.columns[i].name);
        fputs(before, file);
        slc_picture_put_quoted(file, name);
        fprintf(file, " %u", i);
        before = ", ";
    }
    fputs(")\n", file);
}

static void plot_layers(FILE *file, const drawing *d, const bool *any)
{
    const char *before = "plot ";
    fprintf(file,
            "set xrange [-0.7:%u.7]\nset yrange [0:%.9g]\nset ylabel '%s'\nset tmargin at screen 0.47\n"
            "set bmargin at screen 0.155\nunset xlabel\nset grid noxtics ytics lc rgb '#dddddd' back\n"
            "set label 'by layer, at the peak' at graph 0.5, 1.06 center\n"
            "set key at screen 0.832, screen 0.47 left top Left reverse vertical samplen 2\n",
            d->peak.count - 1, 1.1 * (double)highest_column(&d->peak) / d->bar_units.bytes, d->bar_units.bytes_name);
    put_names(file, d);
    for (int k = SLC_MEMORY_COLOURS; k >= 0; k--) {
        if (!any[k]) continue;
        const bool unused = k == SLC_MEMORY_COLOURS;
        fprintf(file, "%s$bars%d using 1:2:3:4:5:6 with boxxyerror fs solid border lc rgb '%s' lc rgb '%s' title '%s'",
                before, k, unused ? "#888888" : "white", unused ? unused_rgb : slc_memory_colours[k].rgb,
                unused ? "planned, not in use now" : slc_memory_category_name(slc_memory_colours[k].category));
        before = ", \\\n     ";
    }
    fputc('\n', file);
}

static void put_script(FILE *file, void *what)
{
    const drawing *d = what;
    bool any[SLC_MEMORY_COLOURS + 1];
    slc_memory_curves_put_data(file, &d->curves, &d->units);
    for (int k = 0; k <= SLC_MEMORY_COLOURS; k++) any[k] = put_boxes(file, d, k);
    fputs("set multiplot\n", file);
    plot_time(file, d);
    plot_layers(file, d, any);
    fputs("unset multiplot\n", file);
}

/* ---- Both ---- */

static sluice_status draw_peak(FILE *out, drawing *d, const char *path)
{
    char at[24], where[96];
    const slc_memory_column *last = &d->peak.columns[d->peak.count - 1];
    sluice_status status = slc_picture_draw(path, HEIGHT, put_script, d);
    if (status) return status;
    slc_memory_peak_name(&d->profile->job, &d->peak, where, sizeof where);
    fprintf(out, "picture    %s: at most %s in use (%" PRIu64 " bytes), %s into the step, %s; %s more planned\n", path,
            slc_size_of(d->peak.live_bytes).text, d->peak.live_bytes, slc_plan_seconds(d->peak.at_s, at), where,
            slc_size_of(last->unused).text);
    return SLUICE_OK;
}

static sluice_status draw_series(FILE *out, drawing *d, const slc_item_times *items, const slc_memory_series *series,
                                 uint64_t budget_bytes, const char *path)
{
    const slc_job *job = &d->profile->job;
    d->curves = (slc_memory_curves){series, d->step_s, job->reserved_bytes, d->plan->arena_bytes, budget_bytes, false};
    sluice_status status = slc_memory_peak_find(job, d->plan, items, series, d->step_s, &d->peak);
    if (status) return status;
    d->units = slc_picture_choose_units(d->step_s, d->peak.planned_bytes);
    d->bar_units = slc_picture_choose_units(d->step_s, highest_column(&d->peak));
    status = draw_peak(out, d, path);
    slc_memory_peak_fini(&d->peak);
    return status;
}

sluice_status slc_memory_picture_draw(FILE *out, const slc_profile *profile, const slc_plan *plan,
                                      uint64_t budget_bytes, const char *path)
{
    slc_forecast forecast;
    slc_memory_series series = {0};
    drawing d = {.profile = profile, .plan = plan};
    slc_item_times *items = calloc((size_t)plan->train.item_count + 1, sizeof *items);
    if (!items) return slc_error(SLUICE_ERR_MEMORY, "times of %u items", plan->train.item_count);
    sluice_status status = slc_simulate_items(&profile->job, &profile->times, plan, NULL, &forecast, items);
    if (!status && !(forecast.step_s > 0))
        status = slc_error(SLUICE_ERR_ARGUMENT, "picture %s: all times are 0, there is no step to show", path);
    d.step_s = forecast.step_s;
    snprintf(d.title, sizeof d.title, "memory of %.100s, %u rank%s, %s: %s planned", profile->model, profile->job.world,
             profile->job.world == 1 ? "" : "s", plan->schedule,
             slc_size_of(plan->arena_bytes + profile->job.reserved_bytes).text);
    if (!status) status = slc_simulate_memory(plan, items, d.step_s, &series);
    if (!status) status = draw_series(out, &d, items, &series, budget_bytes, path);
    slc_memory_series_fini(&series);
    free(items);
    return status;
}
