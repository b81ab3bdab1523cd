/* Checks pictures that gnuplot has drawn. */
#pragma once

#include <sluice/status.h>

/* Checks that the SVG or PNG file at `path` (.svg, .png) is complete. gnuplot reports no error when the disk is full.
 * Errors: PATH, IO, naming the path. */
sluice_status slc_picture_file_check(const char *path);
