/* Commands of the laboratory that measure on ranks of this machine. */
#pragma once

#include "bench/cli/outcome.h"

#include <sluice/world.h>

/* Measures on one rank of the world; all ranks are called. Rank 0 prints, and adds to *files what became of the files
 * that it wrote. */
typedef sluice_status (*slc_rank_measure)(const void *context, sluice_world *world, slc_outcome *files);

/* Runs `sluice-lab COMMAND`. A process that a user has started launches itself with `args` on `ranks` ranks; a process
 * that was launched joins the world, measures and leaves. If a file could not be written, rank 0 fails after all of its
 * work. Prints the error lines; returns the exit code. */
int slc_run_on_ranks(int ranks, const char *command, char *const *args, slc_rank_measure measure, const void *context);
