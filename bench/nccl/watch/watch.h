/* Compares what the ranks of each communicator have called, and says who waits for whom and why. One thread. */
#ifndef SLC_BENCH_NCCL_WATCH_H
#define SLC_BENCH_NCCL_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Watches the records in these folders until a fault is found, all processes have ended, or an interrupt comes; a rank
 * that others wait for is reported after `stall_s`. With `once` it looks a single time and prints to standard error:
 * the caller has a report of its own to print. Writes what it found to `json` too, unless that is NULL. Returns the
 * exit code: 0 without a fault, 1 with one. */
int slc_nccl_watch(const char *const *paths, size_t count, double stall_s, bool once, const char *json);

#endif
