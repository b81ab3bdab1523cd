/* Files of JSON as texts. Errors, with the path: IO, MEMORY; of reading also ARGUMENT (no regular file), FORMAT (more
 * than SLC_JSON_FILE_BYTES). */
#ifndef SLC_BASE_JSON_FILE_H
#define SLC_BASE_JSON_FILE_H

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

#define SLC_JSON_FILE_BYTES (UINT64_C(1) << 30)

/* The whole file, malloc'ed. Nothing blocks, whatever the path names: a pipe or a device is refused. */
sluice_status slc_json_file_read(const char *path, char **text, size_t *length);

/* Whole or not at all: written beside its place as PATH.part and renamed. What is there and no regular file (a pipe,
 * a device) is written directly. */
sluice_status slc_json_file_write(const char *path, const char *text);

#endif
