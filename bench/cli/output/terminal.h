/* Lines for a terminal: one that is wider than the terminal is broken, and cannot be rewritten in place. */
#pragma once

#include <stdio.h>

/* The columns of the terminal that the stream writes to; 0: it is none, or does not say. */
unsigned slc_terminal_columns(FILE *file);

/* Writes the line over the present one, cut to the terminal's columns, and leaves the cursor on it. A line that is no
 * wider is written as it is, and so is each line if the width is not known. */
void slc_terminal_rewrite(FILE *file, const char *line);
