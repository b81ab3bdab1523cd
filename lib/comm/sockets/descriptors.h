/* Errors of a process that runs out of file descriptors. The library leaves the process's limit alone, because a
 * program may count on it (select). `sluice run` raises the soft limit of the ranks that it starts; elsewhere the one
 * who starts them does. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>

/* True if `error`, an errno, says that there were too few descriptors. */
bool slc_descriptors_lacking(int error);

/* Returns SYSTEM: `what` failed for want of descriptors. The line says what the limit is, how many a rank of `size`
 * needs at most, and how the limit is raised. */
sluice_status slc_descriptors_error(const char *what, int size);

/* Returns what slc_descriptors_error does if `error` says that descriptors were lacking; else SYSTEM with "WHAT: " and
 * the text of `error`. */
sluice_status slc_descriptors_or_system(int error, const char *what, int size);
