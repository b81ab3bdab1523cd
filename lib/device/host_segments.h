/* The host's segments that this process has open, so that a process forked from it gives them up: such a child would
 * otherwise write into memory that the ranks of a job share, and hold all of it after its parent has gone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* `own`: a forked child reads what is there and keeps what it writes to itself. Else it may not touch it at all. Any
 * thread. False: no memory. */
bool slc_host_segments_add(void *base, size_t bytes, int fd, bool own);

/* Forgets the segment at `base`. Returns its descriptor, which the caller closes; -1 in a forked child, which has none.
 */
int slc_host_segments_remove(void *base);

/* Returns true if the segment was inherited from the process that this one was forked from. */
bool slc_host_segments_inherited(void *base);
