/* A process that ends the ranks' groups when the launcher is gone without having said so. */
#ifndef SLC_BENCH_LAUNCH_GUARD_H
#define SLC_BENCH_LAUNCH_GUARD_H

#include <sluice/status.h>
#include <sys/types.h>

typedef struct {
    pid_t pid;     /* 0: there is none */
    int pipe;      /* the guard holds its other end and sees when this one closes */
    int count;     /* of ranks */
    pid_t *groups; /* in memory that the guard shares; 0: nothing to end */
} slc_launch_guard;

/* Forks. `groups`: the process groups of the ranks. Errors: SYSTEM, after which *out is no guard. */
sluice_status slc_launch_guard_start(const pid_t *groups, int count, slc_launch_guard *out);
/* Call before the rank is reaped: after that its group's number may be a stranger's. */
void slc_launch_guard_forget(slc_launch_guard *guard, int rank);
/* The groups stay as they are. No guard is allowed. */
void slc_launch_guard_end(slc_launch_guard *guard);

#endif
