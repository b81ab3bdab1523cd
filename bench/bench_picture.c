/* Writes the table and the script, and runs gnuplot. A run without a budget stands at the right edge, under "none". */
#include "bench/bench_picture.h"

#include "bench/result_file.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *const throttle_keys[] = {"throttle", NULL};
static const char *const line_keys[] = {"throttle", "strategy", "schedule", NULL};
static const char *const point_keys[] = {"throttle", "strategy", "schedule", "budget", NULL};
static const char *const colour_keys[] = {"strategy", NULL};
static const char *const dash_keys[] = {"schedule", NULL};

enum { PANEL_HEIGHT = 360, PICTURE_WIDTH = 960 };

typedef struct {
    json_t *runs; /* complete ones, borrowed */
    double least_mib, largest_mib;
    bool unlimited; /* some run had no budget */
    double none_at_mib;
} picture;

static json_t *row_at(const picture *p, size_t index)
{
    return json_array_get(p->runs, index);
}

/* The first of those that are alike: each line, panel or point once. */
static bool first_alike(const picture *p, size_t index, const char *const *keys)
{
    for (size_t i = 0; i < index; i++)
        if (slc_bench_alike(row_at(p, i), row_at(p, index), keys)) return false;
    return true;
}

/* How many different ones come before the one that `row` is like. */
static int number_of(const picture *p, const json_t *row, const char *const *keys)
{
    int number = 0;
    for (size_t i = 0; i < json_array_size(p->runs) && !slc_bench_alike(row_at(p, i), row, keys); i++)
        number += first_alike(p, i, keys);
    return number;
}

static sluice_status measure(const slc_bench_results *results, picture *p)
{
    size_t index;
    json_t *run;
    *p = (picture){.runs = json_array(), .least_mib = INFINITY};
    json_array_foreach (results->runs, index, run) {
        if (!slc_bench_complete(run)) continue;
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
    fprintf(file, "# throttle %s, strategy %s, schedule %s: budget MiB, step ms, peak MiB\n",
            slc_bench_text(like, "throttle"), slc_bench_text(like, "strategy"), slc_bench_text(like, "schedule"));
    for (size_t i = 0; i < json_array_size(p->runs); i++) {
        const json_t *run = row_at(p, i);
        if (!slc_bench_alike(run, like, line_keys) || !first_alike(p, i, point_keys)) continue;
        double budget = slc_bench_number(run, "budget_bytes");
        fprintf(file, "%.3f %.3f %.3f\n", isnan(budget) ? p->none_at_mib : budget / 0x1p20,
                slc_bench_median(p->runs, run, point_keys, "step_s") * 1e3,
                slc_bench_number(run, "peak_bytes") / 0x1p20);
    }
    fputs("\n\n", file);
}

static void put_table(FILE *file, const picture *p)
{
    for (size_t i = 0; i < json_array_size(p->runs); i++)
        if (first_alike(p, i, line_keys)) put_points(file, p, i);
}

/* ---- Script ---- */

static void put_quoted(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') fputc('\'', file);
        if (*text != '\n') fputc(*text, file);
    }
}

/* The lines of one throttle; column 2 is step time, 3 is peak memory. */
static void put_plot(FILE *file, const picture *p, const json_t *panel, int column)
{
    const char *before = column == 3 ? "plot x with lines lc rgb 'gray50' dt 2 title 'peak = budget', \\\n" : "plot ";
    int line = -1;
    bool schedules = false;
    for (size_t i = 0; i < json_array_size(p->runs); i++) schedules |= number_of(p, row_at(p, i), dash_keys) > 0;
    for (size_t i = 0; i < json_array_size(p->runs); i++) {
        const json_t *run = row_at(p, i);
        if (!first_alike(p, i, line_keys)) continue;
        line++;
        if (!slc_bench_alike(run, panel, throttle_keys)) continue;
        fprintf(file,
                "%s     'step_time.dat' index %d using 1:%d smooth unique with linespoints lc %d dt %d pt %d ps 0.9 "
                "lw 2 title '",
                before, line, column, number_of(p, run, colour_keys) + 1, number_of(p, run, dash_keys) + 1,
                number_of(p, run, colour_keys) + 4);
        put_quoted(file, slc_bench_text(run, "strategy"));
        if (schedules) {
            fputc(' ', file);
            put_quoted(file, slc_bench_text(run, "schedule"));
        }
        fputc('\'', file);
        before = ", \\\n";
    }
    fputc('\n', file);
}

static void put_panels(FILE *file, const picture *p)
{
    fputs("  set ylabel 'step, ms'\n  set yrange [0:*]\n", file);
    for (size_t i = 0; i < json_array_size(p->runs); i++) {
        if (!first_alike(p, i, throttle_keys)) continue;
        fputs("  set title 'step time, throttle ", file);
        put_quoted(file, slc_bench_text(row_at(p, i), "throttle"));
        fputs("'\n", file);
        put_plot(file, p, row_at(p, i), 2);
    }
    fputs("  set ylabel 'peak, MiB'\n  set title 'peak memory'\n", file);
    put_plot(file, p, row_at(p, 0), 3);
}

static void put_script(FILE *file, const picture *p)
{
    int panels = 1;
    for (size_t i = 0; i < json_array_size(p->runs); i++) panels += first_alike(p, i, throttle_keys);
    const json_t *run = row_at(p, 0);
    fprintf(file,
            "# gnuplot step_time.gp draws step_time.svg and step_time.png from step_time.dat\n"
            "do for [kind in 'svg png'] {\n"
            "  if (kind eq 'svg') { set terminal svg size %d,%d font 'sans,13' background rgb 'white' noenhanced }\n"
            "  else { set terminal pngcairo size %d,%d font 'sans,11' noenhanced }\n"
            "  set output 'step_time.'.kind\n"
            "  set multiplot layout %d,1\n"
            "  set key outside right top\n  set grid\n  set lmargin 10\n  set rmargin 24\n  set bmargin 4\n"
            "  set xlabel 'budget, MiB'\n  set xrange [%.3f:%.3f]\n",
            PICTURE_WIDTH, PANEL_HEIGHT * panels, PICTURE_WIDTH, PANEL_HEIGHT * panels, panels, 0.9 * p->least_mib,
            (p->unlimited ? p->none_at_mib : p->largest_mib) * 1.03);
    if (p->unlimited) fprintf(file, "  set xtics add (\"\\nnone\" %.3f)\n", p->none_at_mib);
    fputs("  # ", file);
    put_quoted(file, slc_bench_text(run, "model"));
    fputc(' ', file);
    put_quoted(file, slc_bench_text(run, "size"));
    fputc('\n', file);
    put_panels(file, p);
    fputs("  unset multiplot\n  unset output\n}\n", file);
}

/* ---- Drawing ---- */

static sluice_status write_file(const char *folder, const char *name, void (*put)(FILE *, const picture *),
                                const picture *p)
{
    char path[4096];
    slc_result_file file;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return slc_error(SLUICE_ERR_ARGUMENT, "--output: the name of the folder is too long");
    sluice_status status = slc_result_file_open(path, &file);
    if (status) return status;
    put(file.file, p);
    return slc_result_file_commit(&file);
}

/* 0, an errno of starting it, or -1: it failed. */
static int run_gnuplot(const char *folder)
{
    extern char **environ;
    char *const command[] = {(char *)"gnuplot", (char *)"step_time.gp", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int wait_status, why = posix_spawn_file_actions_init(&actions);
    if (why) return why;
    why = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!why) why = posix_spawnp(&pid, "gnuplot", &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (why) return why;
    while (waitpid(pid, &wait_status, 0) < 0)
        if (errno != EINTR) return errno;
    return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0 ? 0 : -1;
}

sluice_status slc_bench_picture_draw(const slc_bench_results *results, const char *folder, FILE *out)
{
    picture p;
    sluice_status status = measure(results, &p);
    bool empty = json_array_size(p.runs) == 0;
    if (!status && !empty) status = write_file(folder, "step_time.dat", put_table, &p);
    if (!status && !empty) status = write_file(folder, "step_time.gp", put_script, &p);
    json_decref(p.runs);
    if (status || empty) return status;

    int why = run_gnuplot(folder);
    if (!why)
        fprintf(out, "picture: %s/step_time.svg, step_time.png\n", folder);
    else if (why == ENOENT)
        fprintf(out, "no picture: gnuplot is not installed (gnuplot-nox); %s/step_time.gp draws it\n", folder);
    else if (why > 0)
        fprintf(out, "no picture: cannot start gnuplot: %s\n", strerror(why));
    else
        fprintf(out, "no picture: gnuplot failed with %s/step_time.gp\n", folder);
    return SLUICE_OK;
}
