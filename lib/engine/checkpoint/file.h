/* The files of a checkpoint that is being made. Local calls. Private to lib/engine. Errors: PATH, IO with path and
 * reason, so that a full disk reads "No space left on device" whichever call met it. */
#pragma once

#include <sluice/status.h>
#include <stdint.h>

/* Creates a new, empty file. A file of its name is unlinked first and never followed or shared. */
sluice_status slc_checkpoint_file_create(const char *path, int *file);
sluice_status slc_checkpoint_file_write(int file, const char *path, const void *data, uint64_t bytes, uint64_t offset);
/* Synchronizes the file unless `status` is a failure already, and closes it. Returns the first failure. Does nothing
 * with `file` -1. */
sluice_status slc_checkpoint_file_close(int file, const char *path, sluice_status status);

/* Creates, writes, synchronizes and closes a file. */
sluice_status slc_checkpoint_file_put(const char *path, const void *data, uint64_t bytes);
