/* Running out of file descriptors. The library leaves the process's limit alone: a program may count on it (select).
 * `sluice run` raises the soft limit of the ranks that it starts; elsewhere whoever starts them does. */
#ifndef SLC_COMM_DESCRIPTORS_H
#define SLC_COMM_DESCRIPTORS_H

#include <sluice/status.h>
#include <stdbool.h>

/* Does errno say that there were too few? */
bool slc_descriptors_lacking(int error);

/* SYSTEM: says what the limit is, how many one rank of `size` needs at most and how the limit is raised. `what` could
 * not be opened. */
sluice_status slc_descriptors_error(const char *what, int size);

/* The same when that is what `error` says; else "WHAT: " and errno's text. */
sluice_status slc_descriptors_or_system(int error, const char *what, int size);

#endif
