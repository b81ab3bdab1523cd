/* Starting and ending the ranks of a job on this machine. One thread; it takes over the signals SIGCHLD, SIGINT,
 * SIGTERM and SIGHUP. */
#pragma once

#include <sluice/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Says how a job ended, beside its exit code. */
typedef struct {
    bool told_to_stop;  /* by Ctrl-C or its like, or because nobody reads the output */
    uint64_t limit_ns;  /* the limit of limit_at_ns that was over; 0: none was */
    char failures[768]; /* "rank 1 killed by signal 9 (Killed)", of all ranks that failed; "": none did */
} slc_launch_end;

typedef struct {
    int ranks;
    int port;       /* of the rendezvous; 0: a free one is chosen */
    double limit_s; /* the job is ended after this long; 0: never */
    /* NULL, or memory that the ranks share: a time (slc_clock_ns) by which they will have written a later one there; 0:
     * there is no limit now. The job is ended when that time is over. */
    const _Atomic uint64_t *limit_at_ns;
    slc_launch_end *end;   /* NULL, or what is told of the job's end */
    const char *timeout_s; /* SLUICE_COMM_TIMEOUT of the ranks; NULL: as it is */
    bool first_speaks;     /* rank 0 writes to this process's output directly, without a prefix */
    char *const *command;  /* NULL at its end */
} slc_launch_options;

/* Runs the job to its end. *exit_code is that of the first rank that failed (128 + signal), 124 at the time limit, 141
 * when nobody reads the output, else 0. Errors: SYSTEM, MEMORY. */
sluice_status slc_launch(const slc_launch_options *options, int *exit_code);
