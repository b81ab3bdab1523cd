/* A subcommand that starts its own ranks: the same program again, under the launcher. */
#ifndef SLC_BENCH_SELF_LAUNCH_H
#define SLC_BENCH_SELF_LAUNCH_H

#include <sluice/status.h>
#include <stdbool.h>

/* Whether a launcher started this process. */
bool slc_launched(void);

/* Runs `sluice COMMAND ARGS... MORE...` on `ranks` ranks of this machine, to the end; both lists end with NULL, the
 * later options count. Rank 0 speaks for itself, the others get their rank in front. Results: the exit code.
 * Errors: SYSTEM, MEMORY. */
sluice_status slc_launch_self(int ranks, const char *command, char *const *args, char *const *more, int *exit_code);

#endif
