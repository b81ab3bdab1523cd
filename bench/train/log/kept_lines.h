/* The part of a log's file that a run which goes on keeps. */
#pragma once

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

/* Counts the bytes of a file that stay: its first line `head`, and the whole lines of steps up to number `last`
 * (slc_training_lines_until). `head` ends with a newline; NULL: the file has no such line, or that of metrics.csv.
 * *kept is 0 if there is no file, or if it begins with another line. Errors: PATH, IO. */
sluice_status slc_training_kept_lines(const char *path, const char *head, uint64_t last, uint64_t *kept);
