/* tests/command/plan/memory_picture_test.sh covers this file. */
#include "bench/plan/pictures/picture.h"

#include "bench/cli/output/gnuplot.h"
#include "bench/cli/output/picture_file.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"
#include "lib/base/text/ending.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const slc_memory_colour slc_memory_colours[SLC_MEMORY_COLOURS] = {
    {SLC_MEMORY_RESERVED, "#525252"},      {SLC_MEMORY_VALUES, "#4292c6"},      {SLC_MEMORY_MASTERS, "#08519c"},
    {SLC_MEMORY_OPTIMIZER, "#9e9ac8"},     {SLC_MEMORY_GRADIENTS, "#41ab5d"},   {SLC_MEMORY_REDUCED, "#a1d99b"},
    {SLC_MEMORY_GATHERED, "#fd8d3c"},      {SLC_MEMORY_ACTIVATIONS, "#fed976"}, {SLC_MEMORY_WORKSPACES, "#fcbba1"},
    {SLC_MEMORY_COMMUNICATION, "#969696"},
};

/* ---- Files ---- */

sluice_status slc_picture_option(void *options, const slc_option *row, char *text)
{
    if (*text == '|' || (!slc_ends_with(text, ".svg") && !slc_ends_with(text, ".png")))
        return slc_error(SLUICE_ERR_ARGUMENT, "--%s %s: the name must end in .svg or .png", row->name, text);
    memcpy((char *)options + row->field, &text, sizeof text);
    return SLUICE_OK;
}

void slc_picture_put_quoted(FILE *file, const char *text)
{
    fputc('\'', file);
    slc_gnuplot_put_quoted(file, text);
    fputc('\'', file);
}

static void put_head(FILE *file, const char *path, int height)
{
    if (slc_ends_with(path, ".svg"))
        fprintf(file, "set terminal svg size %d,%d font 'sans,13' background rgb 'white' noenhanced\n",
                SLC_PICTURE_WIDTH, height);
    else
        fprintf(file, "set terminal pngcairo size %d,%d font 'sans,11' noenhanced\n", SLC_PICTURE_WIDTH, height);
    fputs("set output ", file);
    slc_picture_put_quoted(file, path);
    fputc('\n', file);
}

sluice_status slc_picture_draw(const char *path, int height, void (*put)(FILE *file, void *what), void *what)
{
    const char *folder = getenv("TMPDIR");
    char script[PATH_MAX];
    if (!folder || !*folder) folder = "/tmp";
    if (snprintf(script, sizeof script, "%s/sluice-picture-XXXXXX", folder) >= (int)sizeof script)
        return slc_error(SLUICE_ERR_ARGUMENT, "TMPDIR=%s: the path is too long", folder);
    int descriptor = mkstemp(script);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!file) return slc_path_error("cannot write", script, errno);
    errno = 0;
    put_head(file, path, height);
    put(file, what);
    fputs("unset output\n", file);
    int lost = ferror(file) ? errno ? errno : EIO : 0;
    int why = fclose(file) && !lost ? errno : lost;
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

slc_picture_units slc_picture_choose_units(double step_s, uint64_t bytes)
{
    slc_picture_units units = {.seconds = step_s >= 10 ? 1 : step_s >= 0.01 ? 1e-3 : 1e-6};
    units.seconds_name = units.seconds == 1 ? "s" : units.seconds >= 1e-3 ? "ms" : "us";
    units.bytes = bytes >= UINT64_C(8) << 30 ? 0x1p30 : bytes >= UINT64_C(1) << 20 ? 0x1p20 : 0x1p10;
    units.bytes_name = units.bytes > 0x1p20 ? "GiB" : units.bytes > 0x1p10 ? "MiB" : "KiB";
    return units;
}

/* ---- Memory over time ---- */

static uint64_t bytes_of(const slc_memory_curves *c, size_t point, int colour)
{
    slc_memory_category category = slc_memory_colours[colour].category;
    return category == SLC_MEMORY_RESERVED ? c->reserved_bytes : c->series->points[point].live[category];
}

static bool has_colour(const slc_memory_curves *c, int colour)
{
    for (size_t p = 0; p < c->series->count; p++)
        if (bytes_of(c, p, colour)) return true;
    return false;
}

/* Columns: time, the sums from below, the highest address. Each point is written twice, so that lines are steps. */
void slc_memory_curves_put_data(FILE *file, const slc_memory_curves *c, const slc_picture_units *units)
{
    const slc_memory_series *series = c->series;
    fputs("$memory << EOD\n", file);
    for (size_t p = 0; p < series->count; p++) {
        double times[2] = {series->points[p].at_s, p + 1 < series->count ? series->points[p + 1].at_s : c->step_s};
        for (int t = 0; t < 2; t++) {
            uint64_t sum = 0;
            fprintf(file, "%.9g", times[t] / units->seconds);
            for (int k = 0; k < SLC_MEMORY_COLOURS; k++) {
                sum += bytes_of(c, p, k);
                fprintf(file, " %.7g", (double)sum / units->bytes);
            }
            fprintf(file, " %.7g\n", (double)(series->points[p].highest + c->reserved_bytes) / units->bytes);
        }
    }
    fputs("EOD\n", file);
}

void slc_memory_curves_plot(FILE *file, const slc_memory_curves *c, const slc_picture_units *units)
{
    const double planned = (double)(c->arena_bytes + c->reserved_bytes) / units->bytes;
    const double budget = (double)c->budget_bytes / units->bytes;
    fprintf(file, "set ylabel '%s' offset 1\nset yrange [0:%.7g]\n", units->bytes_name, 1.1 * fmax(planned, budget));
    fputs("plot ", file);
    for (int k = SLC_MEMORY_COLOURS; k-- > 0;)
        if (has_colour(c, k))
            fprintf(file, "$memory using 1:%d with filledcurves y1=0 fs solid lc rgb '%s' title '%s', \\\n     ", k + 2,
                    slc_memory_colours[k].rgb, slc_memory_category_name(slc_memory_colours[k].category));
    if (c->highest)
        fprintf(file, "$memory using 1:%d with lines lc rgb '#222222' lw 1.5 title 'highest address', \\\n     ",
                SLC_MEMORY_COLOURS + 2);
    if (c->budget_bytes) fprintf(file, "%.9g with lines lc rgb '#cb181d' lw 2 title 'budget', \\\n     ", budget);
    fprintf(file, "%.9g with lines lc rgb '#222222' dt 2 lw 1.5 title 'planned'\n", planned);
}
