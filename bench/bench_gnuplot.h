/* Runs gnuplot on a script that was written into a folder. */
#ifndef SLC_BENCH_BENCH_GNUPLOT_H
#define SLC_BENCH_BENCH_GNUPLOT_H

#include <stdio.h>

/* `folder`/`name`.gp is to draw `name`.svg and .png there. Says in one line on `out` what came of it; that gnuplot is
 * not there is no error. */
void slc_gnuplot_draw(const char *folder, const char *name, FILE *out);

#endif
