/* Errors of a process that runs out of file descriptors. The library leaves the process's limit alone, because a
 * program may count on it (select). `sluice run` raises the soft limit of the ranks that it starts; elsewhere the one
 * who starts them does. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>

/* Whether errno says that there were too few. */
bool slc_descriptors_lacking(int error);

/* Returns SYSTEM: `what` failed for want of descriptors. The line says what the limit is, how many a rank of `size`
 * needs at most, and how the limit is raised. */
sluice_status slc_descriptors_error(const char *what, int size);

/* The same if `error` says so; else SYSTEM with "WHAT: " and errno's text. */
sluice_status slc_descriptors_or_system(int error, const char *what, int size);
