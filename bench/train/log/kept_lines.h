/* The part of a log's file that a run which goes on keeps. */
#pragma once

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

/* Sets how many bytes of a file are its first line `head` and whole lines of steps up to number `last`
 * (slc_training_lines_until). `head` ends with a newline and is the file's own; NULL: it has none, or that of
 * metrics.csv. 0: there is no file, or it begins with another line. Errors: PATH, IO. */
sluice_status slc_training_kept_lines(const char *path, const char *head, uint64_t last, uint64_t *kept);
