/* Files of JSON as texts. Errors, which name the path: PATH, IO, MEMORY; reading also has ARGUMENT (no regular file)
 * and FORMAT (more than SLC_JSON_FILE_BYTES). */
#pragma once

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

#define SLC_JSON_FILE_BYTES (UINT64_C(1) << 30)

/* Reads the whole file into *text, which is malloc'ed. It never blocks: a pipe or a device is refused. */
sluice_status slc_json_file_read(const char *path, char **text, size_t *length);

/* Writes a file whole or not at all: as a draft (draft.h), which takes its place. If the path names
 * something that is no regular file (a pipe, a device), the text is written to it directly. */
sluice_status slc_json_file_write(const char *path, const char *text);
