/* Writes a gnuplot script that contains its data, and runs it. One step is shown, from its first slot on. The part of
 * an operation before or after the step is shown at the place that it has in the next or the previous step.
 * tests/command/plan/memory_picture_test.sh covers this file. */
#include "bench/plan/pictures/timeline_picture.h"

#include "bench/plan/pictures/picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEIGHT = 760, PLOT_WIDTH = 1000, LETTER = 7, FEW_BOXES = 700 };
static const double narrow = 2; /* pixels: a box that is not wider is drawn as a mark */

typedef enum {
    FORWARD,
    RECOMPUTE,
    BACKWARD,
    EXPOSED,
    REDUCE,
    GATHER,
    EXCHANGE,
    AGREE,
    UPDATE,
    COMPRESS,
    COLOURS
} colour;

static const struct {
    const char *name, *rgb;
    int lane; /* lanes are counted from below */
} colours[COLOURS] = {
    {"forward", "#6baed6", 2}, {"recompute", "#1fbfcf", 2}, {"backward", "#2171b5", 2}, {"exposed", "#fb6a4a", 2},
    {"reduce", "#41ab5d", 1},  {"gather", "#fd8d3c", 1},    {"exchange", "#e7298a", 1}, {"agree", "#636363", 1},
    {"update", "#807dba", 0},  {"compress", "#ce1256", 0},
};

typedef struct {
    const slc_trace_picture *p;
    FILE *file;
    slc_picture_units units;
    slc_memory_curves curves;
    size_t boxes[COLOURS], marks[COLOURS];
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

/* Writes a box if it belongs into the block that is being written. A colour has two blocks of data: $NAME for its boxes
 * and $NAME_marks for boxes that are too narrow to be seen. */
static void put_box(drawing *d, colour of, bool marks, double from_s, double to_s)
{
    const double step_s = d->p->step_s, unit_s = d->units.seconds, bottom = colours[of].lane + 0.1, top = bottom + 0.8;
    for (double shift_s = floor(from_s / step_s) * step_s; shift_s < to_s; shift_s += step_s) {
        double first = fmax(from_s - shift_s, 0), last = fmin(to_s - shift_s, step_s);
        if (last <= first || ((last - first) / step_s * PLOT_WIDTH <= narrow) != marks) continue;
        if (marks)
            fprintf(d->file, "%.9g %.3g 0 %.3g\n", first / unit_s, bottom, top - bottom);
        else
            fprintf(d->file, "%.9g %.3g %.9g %.9g %.3g %.3g\n", first / unit_s, bottom, first / unit_s, last / unit_s,
                    bottom, top);
        *(marks ? &d->marks[of] : &d->boxes[of]) += 1;
    }
}

/* Returns where the slot's own work begins: after the recomputation, if the layer recomputes in this backward slot. */
static double own_begin_s(const drawing *d, uint32_t item)
{
    const slc_trace_picture *p = d->p;
    const uint32_t slot = p->plan->train.items[item].slot;
    const double from_s = p->items[item].start_s, to_s = p->items[item].end_s;
    const double whole_s = slc_slot_s(p->job, p->times, p->plan->recompute, slot), own_s = p->times->slot_s[slot];
    return whole_s > own_s ? from_s + (whole_s - own_s) / whole_s * (to_s - from_s) : from_s;
}

static void put_slot(drawing *d, uint32_t item, colour of, bool marks)
{
    const slc_item_times *times = &d->p->items[item];
    const double own_s = own_begin_s(d, item);
    if (of == RECOMPUTE && own_s > times->start_s) put_box(d, of, marks, times->start_s, own_s);
    if (of == colour_of(d->p->job, &d->p->plan->train.items[item])) put_box(d, of, marks, own_s, times->end_s);
}

static void put_block(drawing *d, colour of, bool marks)
{
    const slc_program *program = &d->p->plan->train;
    fprintf(d->file, "$%s%s << EOD\n", colours[of].name, marks ? "_marks" : "");
    for (uint32_t i = 0; i < program->item_count; i++)
        if (program->items[i].kind == SLC_ITEM_SLOT)
            put_slot(d, i, of, marks);
        else if (colour_of(d->p->job, &program->items[i]) == of)
            put_box(d, of, marks, d->p->items[i].start_s, d->p->items[i].end_s);
    for (uint32_t e = 0; of == EXPOSED && e < d->p->exposure_count; e++)
        put_box(d, of, marks, d->p->exposures[e].from_s, d->p->exposures[e].to_s);
    fputs("EOD\n", d->file);
}

/* ---- Script ---- */

/* Writes the layer's name in every slot that is wide enough for it. */
static void put_labels(const drawing *d)
{
    const slc_program *program = &d->p->plan->train;
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        if (item->kind != SLC_ITEM_SLOT) continue;
        const char *name = d->p->job->layers[slc_slot_layer(d->p->job, item->slot)];
        double from_s = own_begin_s(d, i), to_s = d->p->items[i].end_s;
        if ((to_s - from_s) / d->p->step_s * PLOT_WIDTH < (double)(LETTER * (strlen(name) + 1))) continue;
        fputs("set label ", d->file);
        slc_picture_put_quoted(d->file, name);
        fprintf(d->file, " at first %.9g, first 2.5 center front tc rgb '%s' font ',9'\n",
                (from_s + to_s) / 2 / d->units.seconds, colour_of(d->p->job, item) == FORWARD ? "black" : "white");
    }
}

/* Colours that have nothing but marks have a key of their own; one line of the key says what a mark is. */
static void plot_lanes(drawing *d)
{
    size_t boxes = 0, marks = 0;
    const char *before = "plot ";
    for (int c = 0; c < COLOURS; c++) boxes += d->boxes[c];
    for (int c = 0; c < COLOURS; c++) {
        if (d->boxes[c])
            fprintf(d->file, "%s$%s using 1:2:3:4:5:6 with boxxyerror fs solid %s lc rgb '%s' title '%s'", before,
                    colours[c].name, boxes > FEW_BOXES ? "noborder" : "border lc rgb 'white'", colours[c].rgb,
                    colours[c].name);
        if (d->boxes[c]) before = ", \\\n     ";
    }
    for (int c = 0; c < COLOURS; c++) {
        if (!d->marks[c]) continue;
        fprintf(d->file, "%s$%s_marks using 1:2:3:4 with vectors nohead lw 1.5 lc rgb '%s' %s%s%s", before,
                colours[c].name, colours[c].rgb, d->boxes[c] ? "notitle" : "title '",
                d->boxes[c] ? "" : colours[c].name, d->boxes[c] ? "" : "'");
        before = ", \\\n     ";
        marks += d->marks[c];
    }
    if (marks) fprintf(d->file, "%sNaN with lines lw 1.5 lc rgb '#222222' title 'a line: too short to scale'", before);
    fputc('\n', d->file);
}

static void put_lanes(drawing *d)
{
    fputs("set lmargin at screen 0.105\nset rmargin at screen 0.815\nset tmargin at screen 0.91\n"
          "set bmargin at screen 0.56\nset yrange [0:3]\nset ytics scale 0 ('updates' 0.5, 'communication' 1.5, "
          "'compute' 2.5)\nset format x ''\nset grid xtics lc rgb '#dddddd'\n"
          "set key at screen 0.83, screen 0.92 left top Left reverse vertical samplen 2\n",
          d->file);
    fputs("set title ", d->file);
    slc_picture_put_quoted(d->file, d->p->title);
    fputs(" offset 0,-0.5\n", d->file);
    put_labels(d);
    plot_lanes(d);
    fputs("\nunset label\nunset title\n", d->file);
}

static void put_curves(drawing *d)
{
    fprintf(d->file,
            "set tmargin at screen 0.53\nset bmargin at screen 0.09\nset format x '%%g'\nset xlabel '%s'\n"
            "set ytics auto scale 1\nset grid xtics ytics lc rgb '#dddddd' back\n"
            "set key at screen 0.83, screen 0.53 left top Left reverse vertical samplen 2\n",
            d->units.seconds_name);
    slc_memory_curves_plot(d->file, &d->curves, &d->units);
}

static void put_script(FILE *file, void *what)
{
    drawing *d = what;
    const slc_trace_picture *p = d->p;
    d->file = file;
    d->curves =
        (slc_memory_curves){p->memory, p->step_s, p->job->reserved_bytes, p->plan->arena_bytes, p->budget_bytes, true};
    d->units = slc_picture_choose_units(p->step_s, p->plan->arena_bytes);
    for (int c = 0; c < COLOURS; c++) {
        put_block(d, (colour)c, false);
        put_block(d, (colour)c, true);
    }
    slc_memory_curves_put_data(file, &d->curves, &d->units);
    fprintf(file, "set xrange [0:%.9g]\nset multiplot\n", p->step_s / d->units.seconds);
    put_lanes(d);
    put_curves(d);
    fputs("unset multiplot\n", file);
}

sluice_status slc_trace_picture_draw(const slc_trace_picture *picture, const char *path)
{
    drawing d = {.p = picture};
    return slc_picture_draw(path, HEIGHT, put_script, &d);
}
