/* Scripts of gnuplot that draw a picture as SVG and as PNG, and running one that was written into a folder. */
#ifndef SLC_BENCH_BENCH_GNUPLOT_H
#define SLC_BENCH_BENCH_GNUPLOT_H

#include <stdio.h>

/* The head of `name`.gp, which draws `name`.svg and .png from `name`.dat: a loop over both kinds, to be ended with
 * "  unset output\n}\n". */
void slc_gnuplot_begin(FILE *file, const char *name, int width, int height);

/* Text between single quotes. */
void slc_gnuplot_put_quoted(FILE *file, const char *text);

/* `folder`/`name`.gp is to draw `name`.svg and .png there. Says in one line on `out` what came of it; that gnuplot is
 * not there is no error. */
void slc_gnuplot_draw(const char *folder, const char *name, FILE *out);

#endif
