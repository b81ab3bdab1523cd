/* Subcommands that start their own ranks run the same program again, under the launcher. One thread. */
#pragma once

#include "bench/launch/launch.h"

/* Returns true if a launcher has started this process. */
bool slc_launched(void);

/* Runs `sluice COMMAND ARGS... MORE...` on `ranks` ranks of this machine, to the end; both lists end with NULL, `more`
 * may be NULL, and of two equal options the later counts. Rank 0 prints as it is, the other ranks with their number in
 * front. *exit_code is that of slc_launch. Errors: SYSTEM, MEMORY. */
sluice_status slc_launch_self(int ranks, const char *command, char *const *args, char *const *more, int *exit_code);

/* Runs the command as slc_launch_self does, with all that slc_launch can be told: `how` gives the number of ranks,
 * limits of time, and where to tell how the job ended. */
sluice_status slc_launch_self_as(const slc_launch_options *how, const char *command, char *const *args,
                                 char *const *more, int *exit_code);
