/* Files of JSON as texts. Errors: IO and MEMORY, with the path. */
#ifndef SLC_BASE_JSON_FILE_H
#define SLC_BASE_JSON_FILE_H

#include <sluice/status.h>
#include <stddef.h>

/* The whole file, malloc'ed. */
sluice_status slc_json_file_read(const char *path, char **text, size_t *length);

/* Whole or not at all: written beside its place as PATH.part and renamed. What is there and no regular file (a pipe,
 * a device) is written directly. */
sluice_status slc_json_file_write(const char *path, const char *text);

#endif
