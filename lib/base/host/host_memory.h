/* The memory that this host still has for this process: what its RAM and the limits of its control groups leave. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t available_bytes; /* the least of what RAM and every control group leave; UINT64_MAX: nothing says */
    uint64_t ram_bytes;       /* of the host; 0: nothing says */
    uint64_t cgroup_bytes;    /* the limit of the control group that leaves least, if it leaves less than RAM; 0 */
    uint64_t address_bytes;   /* addresses that RLIMIT_AS leaves this process; UINT64_MAX: it has no limit */
} slc_host_memory;

/* Reads /proc and the control groups (versions 1 and 2, with all groups above this process's) under the folder `root`,
 * "" for the system's. Memory that a group can give back at once (inactive pages of files) counts as available. A limit
 * that cannot be read does not count. Any thread. */
void slc_host_memory_read(const char *root, slc_host_memory *out);

/* Writes "11.0 GiB of 31.2 GiB are available (a control group's limit is 12.0 GiB)" for messages; returns `text`. */
char *slc_host_memory_describe(const slc_host_memory *memory, char *text, size_t bytes);
