/* A file that says where a pipeline is cut: names of layers with commas, blanks or line ends between them. */
#pragma once

#include <sluice/status.h>

/* Reads the names of the file as one text with commas between them, as --pipeline-cuts takes it; the caller frees *out.
 * Errors, which name the path: PATH, IO, ARGUMENT (no regular file), FORMAT (too long), MEMORY. */
sluice_status slc_cuts_file_read(const char *path, char **out);
