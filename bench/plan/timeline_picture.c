/* Writes a gnuplot script that contains its data, and runs it. One step is shown, from its first slot on. The part of
 * an operation before or after the step is shown at the place that it has in the next or the previous step. */
#include "bench/plan/timeline_picture.h"

#include "bench/cli/gnuplot.h"
#include "bench/cli/picture_file.h"
#include "lib/base/status.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 1400, HEIGHT = 760, PLOT_WIDTH = 1000, LETTER = 7, FEW_BOXES = 700 };

typedef enum { FORWARD, BACKWARD, EXPOSED, REDUCE, GATHER, EXCHANGE, AGREE, UPDATE, COMPRESS, COLOURS } colour;

static const struct {
    const char *name, *rgb;
    int lane; /* lanes are counted from below */
} colours[COLOURS] = {
    {"forward", "#6baed6", 2}, {"backward", "#2171b5", 2}, {"exposed", "#fb6a4a", 2},
    {"reduce", "#41ab5d", 1},  {"gather", "#fd8d3c", 1},   {"exchange", "#e7298a", 1},
    {"agree", "#636363", 1},   {"update", "#807dba", 0},   {"compress", "#ce1256", 0},
};

/* Listed from below. */
static const struct {
    slc_memory_category category;
    const char *rgb;
} memory_order[] = {
    {SLC_MEMORY_VALUES, "#4292c6"},     {SLC_MEMORY_OPTIMIZER, "#9e9ac8"},     {SLC_MEMORY_GRADIENTS, "#41ab5d"},
    {SLC_MEMORY_REDUCED, "#a1d99b"},    {SLC_MEMORY_GATHERED, "#fd8d3c"},      {SLC_MEMORY_ACTIVATIONS, "#fed976"},
    {SLC_MEMORY_WORKSPACES, "#fcbba1"}, {SLC_MEMORY_COMMUNICATION, "#969696"},
};
enum { MEMORY_KINDS = sizeof memory_order / sizeof *memory_order };

typedef struct {
    const slc_trace_picture *p;
    FILE *file;
    double unit_s; /* seconds of one unit of the time axis */
    double unit_bytes;
    const char *unit_s_name, *unit_bytes_name;
    size_t boxes[COLOURS];
} drawing;

/* ---- Data ---- */

static colour colour_of(const slc_job *job, const slc_item *item)
{
    switch (item->kind) {
    case SLC_ITEM_SLOT: return slc_slot_is_forward(job, item->slot) ? FORWARD : BACKWARD;
    case SLC_ITEM_REDUCE_SCATTER:
    case SLC_ITEM_ALL_REDUCE: return REDUCE;
    case SLC_ITEM_AGREE: return AGREE;
    case SLC_ITEM_UPDATE: return UPDATE;
    case SLC_ITEM_INSPECT:
    case SLC_ITEM_COMPRESS: return COMPRESS;
    case SLC_ITEM_EXCHANGE: return EXCHANGE;
    default: return GATHER;
    }
}

static void put_box(drawing *d, colour of, double from_s, double to_s)
{
    double step_s = d->p->step_s, bottom = colours[of].lane + 0.1, top = bottom + 0.8;
    for (double shift_s = floor(from_s / step_s) * step_s; shift_s < to_s; shift_s += step_s) {
        double first = fmax(from_s - shift_s, 0), last = fmin(to_s - shift_s, step_s);
        if (last <= first) continue;
        fprintf(d->file, "%.9g %.3g %.9g %.9g %.3g %.3g\n", first / d->unit_s, bottom, first / d->unit_s,
                last / d->unit_s, bottom, top);
        d->boxes[of]++;
    }
}

static void put_boxes(drawing *d, colour of)
{
    const slc_program *program = &d->p->plan->train;
    fprintf(d->file, "$%s << EOD\n", colours[of].name);
    for (uint32_t i = 0; i < program->item_count; i++)
        if (colour_of(d->p->job, &program->items[i]) == of)
            put_box(d, of, d->p->items[i].start_s, d->p->items[i].end_s);
    for (uint32_t e = 0; of == EXPOSED && e < d->p->exposure_count; e++)
        put_box(d, of, d->p->exposures[e].from_s, d->p->exposures[e].to_s);
    fputs("EOD\n", d->file);
}

static uint64_t most_live(const slc_memory_series *memory, int kinds)
{
    uint64_t most = 0;
    for (size_t p = 0; p < memory->count; p++) {
        uint64_t sum = 0;
        for (int k = 0; k < kinds; k++) sum += memory->points[p].live[memory_order[k].category];
        if (sum > most) most = sum;
    }
    return most;
}

static bool has_category(const slc_memory_series *memory, int kind)
{
    for (size_t p = 0; p < memory->count; p++)
        if (memory->points[p].live[memory_order[kind].category]) return true;
    return false;
}

/* Columns: time, the sums from below, the highest address. Each point is written twice, so that lines are steps. */
static void put_memory(drawing *d)
{
    const slc_memory_series *memory = d->p->memory;
    fputs("$memory << EOD\n", d->file);
    for (size_t p = 0; p < memory->count; p++) {
        double times[2] = {memory->points[p].at_s, p + 1 < memory->count ? memory->points[p + 1].at_s : d->p->step_s};
        for (int t = 0; t < 2; t++) {
            uint64_t sum = 0;
            fprintf(d->file, "%.9g", times[t] / d->unit_s);
            for (int k = 0; k < MEMORY_KINDS; k++) {
                sum += memory->points[p].live[memory_order[k].category];
                fprintf(d->file, " %.7g", (double)sum / d->unit_bytes);
            }
            fprintf(d->file, " %.7g\n", (double)memory->points[p].highest / d->unit_bytes);
        }
    }
    fputs("EOD\n", d->file);
}

/* ---- Script ---- */

static void put_quoted(FILE *file, const char *text)
{
    fputc('\'', file);
    slc_gnuplot_put_quoted(file, text);
    fputc('\'', file);
}

/* Writes the layer's name in every slot that is wide enough for it. */
static void put_labels(const drawing *d)
{
    const slc_program *program = &d->p->plan->train;
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        if (item->kind != SLC_ITEM_SLOT) continue;
        const char *name = d->p->job->layers[slc_slot_layer(d->p->job, item->slot)];
        double from_s = d->p->items[i].start_s, to_s = d->p->items[i].end_s;
        if ((to_s - from_s) / d->p->step_s * PLOT_WIDTH < (double)(LETTER * (strlen(name) + 1))) continue;
        fputs("set label ", d->file);
        put_quoted(d->file, name);
        fprintf(d->file, " at first %.9g, first 2.5 center front tc rgb '%s' font ',9'\n",
                (from_s + to_s) / 2 / d->unit_s, colour_of(d->p->job, item) == FORWARD ? "black" : "white");
    }
}

static void put_lanes(drawing *d)
{
    size_t boxes = 0;
    for (int c = 0; c < COLOURS; c++) boxes += d->boxes[c];
    fputs("set lmargin at screen 0.105\nset rmargin at screen 0.815\nset tmargin at screen 0.91\n"
          "set bmargin at screen 0.56\nset yrange [0:3]\nset ytics scale 0 ('updates' 0.5, 'communication' 1.5, "
          "'compute' 2.5)\nset format x ''\nset grid xtics lc rgb '#dddddd'\n"
          "set key at screen 0.83, screen 0.90 left top Left reverse vertical samplen 2\n",
          d->file);
    fputs("set title ", d->file);
    put_quoted(d->file, d->p->title);
    fputs(" offset 0,-0.5\n", d->file);
    put_labels(d);
    const char *before = "plot ";
    for (int c = 0; c < COLOURS; c++) {
        if (!d->boxes[c]) continue;
        fprintf(d->file, "%s$%s using 1:2:3:4:5:6 with boxxyerror fs solid %s lc rgb '%s' title '%s'", before,
                colours[c].name, boxes > FEW_BOXES ? "noborder" : "border lc rgb 'white'", colours[c].rgb,
                colours[c].name);
        before = ", \\\n     ";
    }
    fputs("\nunset label\nunset title\n", d->file);
}

static void put_curves(drawing *d)
{
    double arena = (double)d->p->plan->arena_bytes / d->unit_bytes;
    fprintf(d->file,
            "set tmargin at screen 0.53\nset bmargin at screen 0.09\nset format x '%%g'\nset xlabel '%s'\n"
            "set ylabel '%s' offset 1\nset yrange [0:%.7g]\nset ytics auto scale 1\nset grid xtics ytics lc rgb "
            "'#dddddd' back\nset key at screen 0.83, screen 0.53 left top Left reverse vertical samplen 2\n",
            d->unit_s_name, d->unit_bytes_name,
            1.08 * fmax(arena, (double)most_live(d->p->memory, MEMORY_KINDS) / d->unit_bytes));
    fputs("plot ", d->file);
    for (int k = MEMORY_KINDS; k-- > 0;)
        if (has_category(d->p->memory, k))
            fprintf(d->file, "$memory using 1:%d with filledcurves y1=0 fs solid lc rgb '%s' title '%s', \\\n     ",
                    k + 2, memory_order[k].rgb, slc_memory_category_name(memory_order[k].category));
    fprintf(d->file,
            "$memory using 1:%d with lines lc rgb '#222222' lw 1.5 title 'highest address', \\\n     "
            "%.9g with lines lc rgb '#cb181d' dt 2 lw 1.5 title 'arena'\n",
            MEMORY_KINDS + 2, arena);
}

static void choose_units(drawing *d)
{
    uint64_t bytes = d->p->plan->arena_bytes;
    d->unit_s = d->p->step_s >= 10 ? 1 : d->p->step_s >= 0.01 ? 1e-3 : 1e-6;
    d->unit_s_name = d->unit_s == 1 ? "s" : d->unit_s >= 1e-3 ? "ms" : "us";
    d->unit_bytes = bytes >= UINT64_C(8) << 30 ? 0x1p30 : bytes >= UINT64_C(1) << 20 ? 0x1p20 : 0x1p10;
    d->unit_bytes_name = d->unit_bytes > 0x1p20 ? "GiB" : d->unit_bytes > 0x1p10 ? "MiB" : "KiB";
}

static void put_script(drawing *d, const char *path)
{
    choose_units(d);
    bool svg = !strcmp(path + strlen(path) - 4, ".svg");
    if (svg)
        fprintf(d->file, "set terminal svg size %d,%d font 'sans,13' background rgb 'white' noenhanced\n", WIDTH,
                HEIGHT);
    else
        fprintf(d->file, "set terminal pngcairo size %d,%d font 'sans,11' noenhanced\n", WIDTH, HEIGHT);
    fputs("set output ", d->file);
    put_quoted(d->file, path);
    fputc('\n', d->file);
    for (int c = 0; c < COLOURS; c++) put_boxes(d, (colour)c);
    put_memory(d);
    fprintf(d->file, "set xrange [0:%.9g]\nset multiplot\n", d->p->step_s / d->unit_s);
    put_lanes(d);
    put_curves(d);
    fputs("unset multiplot\nunset output\n", d->file);
}

/* ---- Drawing ---- */

bool slc_trace_picture_kind(const char *path)
{
    size_t length = strlen(path);
    return length > 4 && *path != '|' && (!strcmp(path + length - 4, ".svg") || !strcmp(path + length - 4, ".png"));
}

sluice_status slc_trace_picture_draw(const slc_trace_picture *picture, const char *path)
{
    const char *folder = getenv("TMPDIR");
    char script[PATH_MAX];
    if (!folder || !*folder) folder = "/tmp";
    if (snprintf(script, sizeof script, "%s/sluice-timeline-XXXXXX", folder) >= (int)sizeof script)
        return slc_error(SLUICE_ERR_ARGUMENT, "TMPDIR=%s: the path is too long", folder);
    int descriptor = mkstemp(script);
    drawing d = {.p = picture, .file = descriptor < 0 ? NULL : fdopen(descriptor, "w")};
    if (!d.file) return slc_error(SLUICE_ERR_IO, "cannot write %s: %s", script, strerror(errno));
    errno = 0;
    put_script(&d, path);
    int lost = ferror(d.file) ? errno ? errno : EIO : 0;
    int why = fclose(d.file) && !lost ? errno : lost;
    if (why) {
        unlink(script);
        return slc_error(SLUICE_ERR_IO, "cannot write %s: %s", script, strerror(why));
    }
    why = slc_gnuplot_run(NULL, script);
    unlink(script);
    if (!why) return slc_picture_file_check(path);
    if (why == ENOENT)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "picture %s: gnuplot is not installed (gnuplot-nox)", path);
    if (why > 0) return slc_error(SLUICE_ERR_SYSTEM, "picture %s: cannot start gnuplot: %s", path, strerror(why));
    return slc_error(SLUICE_ERR_IO, "picture %s: gnuplot could not draw it; its words are above", path);
}
