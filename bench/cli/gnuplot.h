/* Scripts of gnuplot that draw a picture as SVG and as PNG, and running one that was written into a folder. */
#ifndef SLC_BENCH_BENCH_GNUPLOT_H
#define SLC_BENCH_BENCH_GNUPLOT_H

#include <sluice/status.h>
#include <stdio.h>

/* The head of `name`.gp, which draws `name`.svg and .png from `name`.dat: a loop over both kinds, to be ended with
 * "  unset output\n}\n". */
void slc_gnuplot_begin(FILE *file, const char *name, int width, int height);

/* Text between single quotes. */
void slc_gnuplot_put_quoted(FILE *file, const char *text);

/* Writes `folder`/`name`, a script or a table, by `put`, whole or not at all. Errors: ARGUMENT (a name too long), IO.
 */
sluice_status slc_gnuplot_write(const char *folder, const char *name, void (*put)(FILE *file, const void *what),
                                const void *what);

/* `folder`/`name`.gp is to draw `name`.svg and .png there. Says in one line on `out` that it did, or that gnuplot
 * is not there, which is no error. Errors: IO, SYSTEM. */
sluice_status slc_gnuplot_draw(const char *folder, const char *name, FILE *out);

#endif
