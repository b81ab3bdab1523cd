/* Regular files that are read at given places, with pread and never mapped, so that a file that shrinks while it is in
 * use causes an error and not a signal. Any thread reads. Errors name the path: PATH (missing, no permission), IO
 * (unreadable, shorter than it was), ARGUMENT (not a regular file), MEMORY. */
#pragma once

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *path;
    int fd;
    uint64_t bytes; /* length when it was opened */
} slc_file;

#define SLC_FILE_NONE ((slc_file){.fd = -1})

sluice_status slc_file_open(const char *path, slc_file *out); /* on failure *out is SLC_FILE_NONE */
void slc_file_close(slc_file *file); /* SLC_FILE_NONE is allowed; *file is SLC_FILE_NONE afterwards */

/* Reads bytes [first, first + count); the caller checks the range and owns `out`. */
sluice_status slc_file_read(const slc_file *file, uint64_t first, size_t count, void *out);

/* Writes all bytes at `offset` of any open file. Returns 0 or errno, ENOSPC if nothing could be written. */
int slc_write_at(int fd, const void *data, uint64_t bytes, uint64_t offset);

/* Continues an FNV hash (fnv.h) with the length and every byte of the file, which is read once from its beginning to
 * its end. */
sluice_status slc_file_hash(const slc_file *file, uint64_t *hash);

/* Continues an FNV hash with the length of the file and pieces of it: a file of up to 1 MiB whole, a longer one at 256
 * places that are evenly spread, its beginning and its end among them. Errors: IO. */
sluice_status slc_file_hash_pieces(const slc_file *file, uint64_t *hash);

/* Continues an FNV hash with what tells that two processes of one host have opened one file, unchanged between them:
 * the running kernel, device, inode, length and time of change. Processes of two hosts never get the same, even for one
 * file of a shared disk. Errors: IO (the kernel or the file cannot be asked). */
sluice_status slc_file_identity(const slc_file *file, uint64_t *hash);
