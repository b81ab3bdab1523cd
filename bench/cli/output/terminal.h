/* Writes lines that are rewritten in place on a terminal. A line that is wider than the terminal would be broken into
 * two, and could not be rewritten. */
#pragma once

#include <stdio.h>

/* Returns the columns of the terminal that the stream writes to; 0: the stream is no terminal, or the terminal does not
 * say. */
unsigned slc_terminal_columns(FILE *file);

/* Writes the line over the present one, cut to the terminal's columns, and leaves the cursor on it. A line that is no
 * wider is written as it is, and so is each line if the width is not known. */
void slc_terminal_rewrite(FILE *file, const char *line);
