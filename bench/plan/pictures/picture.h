/* Pictures of one step, drawn by gnuplot: how a script becomes a file, and memory over time by category, which several
 * pictures show in the same colours. */
#pragma once

#include "bench/cli/options/option.h"
#include "sched/simulate/memory_series.h"

#include <stdbool.h>
#include <stdio.h>

enum { SLC_PICTURE_WIDTH = 1400 }; /* pixels */

/* Sets an option that names a picture, SLC_OPTION_SET of a const char *. Errors: ARGUMENT if the name does not end
 * in .svg or .png. */
sluice_status slc_picture_option(void *options, const slc_option *row, char *text);

/* Lets `put` write a gnuplot script after the head that sets terminal and output, runs it, and checks the picture.
 * Errors: UNSUPPORTED (no gnuplot), PATH, IO, SYSTEM. */
sluice_status slc_picture_draw(const char *path, int height, void (*put)(FILE *file, void *what), void *what);

/* Writes text between single quotes. */
void slc_picture_put_quoted(FILE *file, const char *text);

/* Units of axes. */
typedef struct {
    double seconds, bytes; /* of one unit */
    const char *seconds_name, *bytes_name;
} slc_picture_units;
slc_picture_units slc_picture_choose_units(double step_s, uint64_t bytes);

/* The categories in the order in which they lie on each other, from below. */
typedef struct {
    slc_memory_category category;
    const char *rgb;
} slc_memory_colour;
enum { SLC_MEMORY_COLOURS = 10 };
extern const slc_memory_colour slc_memory_colours[SLC_MEMORY_COLOURS];

/* Memory during a step, with what the program keeps itself below everything. */
typedef struct {
    const slc_memory_series *series;
    double step_s;
    uint64_t reserved_bytes, arena_bytes;
    uint64_t budget_bytes; /* 0: none */
    bool highest;          /* show the highest address in use too */
} slc_memory_curves;

/* slc_memory_curves_put_data writes the data block $memory; slc_memory_curves_plot writes its ranges and its plot, with
 * lines for the plan's memory and the budget. The caller has set margins, x axis and key. */
void slc_memory_curves_put_data(FILE *file, const slc_memory_curves *curves, const slc_picture_units *units);
void slc_memory_curves_plot(FILE *file, const slc_memory_curves *curves, const slc_picture_units *units);
