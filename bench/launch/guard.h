/* A process that ends the groups of the ranks if the launcher disappears without having ended them. One thread. */
#pragma once

#include <sluice/status.h>
#include <sys/types.h>

typedef struct {
    pid_t pid;     /* 0: there is none */
    int pipe;      /* the guard reads the other end, which ends when this one closes */
    int count;     /* of ranks */
    pid_t *groups; /* [count], in memory shared with the guard; 0: nothing to end */
} slc_launch_guard;

/* Forks the guard of the ranks' process groups, which it copies. Errors: SYSTEM; *out is then no guard. */
sluice_status slc_launch_guard_start(const pid_t *groups, int count, slc_launch_guard *out);
/* Call it before the rank is reaped: after that the number of its group may be a stranger's. */
void slc_launch_guard_forget(slc_launch_guard *guard, int rank);
/* Ends the guard and leaves the groups alone. *guard may be no guard. */
void slc_launch_guard_end(slc_launch_guard *guard);
