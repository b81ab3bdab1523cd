/* A file that grows by whole pieces (lines, records) while a run goes on. A piece is handed to the system before the
 * call returns, so that it is in the file however the process ends; slc_disk_sync has the disk keep it. A piece that
 * cannot be written leaves the file as it was before, and the next one is tried again. "-" is standard output; what is
 * no regular file (a pipe, a device) is written directly. One thread uses a file. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *path; /* the caller's; NULL: no file is wanted, and every call succeeds and does nothing */
    int fd;
    uint64_t bytes; /* of a regular file: whole pieces, after which the next one comes */
    bool regular, begun;
    uint64_t lost; /* pieces that could not be written */
    int why;       /* errno of the first of them */
} slc_growing_file;

#define SLC_GROWING_FILE_NONE ((slc_growing_file){.fd = -1})

/* Opens or makes the file. Of a regular file the first `keep` bytes stay, and the rest goes when the first piece comes,
 * not before. Errors: PATH, IO. */
sluice_status slc_growing_file_open(const char *path, uint64_t keep, slc_growing_file *out);

/* Appends a piece. Returns false if it is the first that is lost, which is the time to tell the user. */
bool slc_growing_file_put(slc_growing_file *file, const void *piece, size_t bytes);

/* Closes the file; *file is SLC_GROWING_FILE_NONE afterwards. Errors: PATH, IO (a piece was lost, or closing failed).
 */
sluice_status slc_growing_file_close(slc_growing_file *file);
