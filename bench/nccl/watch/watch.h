/* Compares what the ranks of each communicator have called, and says who waits for whom and why. One thread. */
#pragma once

#include "plugins/nccl/record/records.h"

/* Watches the records in these folders until a fault is found, all processes have ended, or an interrupt comes; a rank
 * that others wait for is reported after `stall_s`. Writes what it found to `json` too, unless that is NULL. Returns
 * the exit code: 0 without a fault, 1 with one. */
int slc_nccl_watch(const char *const *paths, size_t count, double stall_s, const char *json);

/* Finds faults in records that the caller has read from these folders and reported, so that findings and tables are
 * about the same records. They are read once more if a program runs, since a fault counts only if a second look shows
 * it. Prints to standard error; returns the exit code as slc_nccl_watch does. */
int slc_nccl_judge(slc_nccl_records *records, const char *const *paths, size_t count, double stall_s);
