/* Reports an error of ranks once in a job, under any launcher: the lowest rank that has the error does it. A rank that
 * died, is gone, stalled or absent is reported by every rank that finds it. Replaces slc_fail if there may be ranks.
 * One thread. */
#pragma once

#include <sluice/world.h>
#include <stdbool.h>

/* slc_rank_fail and slc_rank_refuse tell this thread's last error, after `who` ("sluice train"), if it is this rank
 * that is to tell it, and return the exit code. */

/* Tells of an error of `world`, or of making it (NULL). Destroys the world, whose runtimes are gone. */
int slc_rank_fail(const char *who, sluice_world *world);

/* Tells of an error that came before the world (an option, a file), which each rank finds for itself. It joins the
 * world only to compare, if the other ranks do so soon. */
int slc_rank_refuse(const char *who);

/* Tells a text that is complete as it is, of a command line that cannot be read (EXIT_USAGE), once in a job as
 * slc_rank_refuse does. */
void slc_rank_tell_usage(const char *text);

/* Returns true if a launcher has started this process as one of several ranks; false also if what the launcher says
 * cannot be read. */
bool slc_is_one_of_several_ranks(void);
