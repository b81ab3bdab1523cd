/* docs/command.md tells an option once. Private to bench/cli. */
#pragma once

#include <stdio.h>

/* Prints a command's section of the page to `out`, without those rows of its tables that the section `told` has word
 * for word. A block below the tables names the options of these rows, with a link to `told`, whose heading is "## BY";
 * a table of which no row is left goes. Both texts are as slc_help_markdown prints them, and end with a line feed. */
void slc_help_tell_once(const char *section, const char *told, const char *by, FILE *out);
