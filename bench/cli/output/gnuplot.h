/* Writes gnuplot scripts that draw a picture as SVG and as PNG, and runs them. One thread. */
#pragma once

#include <sluice/status.h>
#include <stdio.h>

/* Writes the beginning of the script `name`.gp, a loop that draws `name`.svg and .png of this size in pixels from
 * `name`.dat. The script's variable `data` is the path of `name`.dat; all these files are in the script's folder, from
 * whatever folder gnuplot is run. The caller closes the loop with "  unset output\n}\n". */
void slc_gnuplot_begin(FILE *file, const char *name, int width, int height);

/* Writes text for a place between single quotes: doubles the quotes in it. */
void slc_gnuplot_put_quoted(FILE *file, const char *text);

/* Lets `put` write `folder`/`name`, a script or a table; the file is whole or absent. Errors: ARGUMENT (the name is too
 * long), PATH, IO. */
sluice_status slc_gnuplot_write(const char *folder, const char *name, void (*put)(FILE *file, const void *what),
                                const void *what);

/* Runs a script in `folder` (NULL: in the present one). Returns 0, the errno of starting gnuplot, or -1: it failed. */
int slc_gnuplot_run(const char *folder, const char *script);

/* Runs `folder`/`name`.gp, which draws `name`.svg and .png there. Prints one line on `out`: that they are drawn, or
 * that gnuplot is not installed, which is no error. Errors: PATH, IO, SYSTEM. */
sluice_status slc_gnuplot_draw(const char *folder, const char *name, FILE *out);
