/* Worlds in a process that is forked from a rank. Such a child is no rank: it has neither the communication thread nor
 * a voice. It gives up at once whatever would keep the other ranks from noticing its parent's death, and memory that it
 * would share with them; every call on the world is an error from then on.
 *
 * Only fork() is seen. What exec replaces (system, posix_spawn) keeps no descriptor that is closed on exec. A child
 * that is forked while a world is being made or destroyed keeps what there is of it until it ends or calls exec. */
#ifndef SLC_COMM_FORK_H
#define SLC_COMM_FORK_H

#include <sluice/world.h>
#include <stdbool.h>

/* From here on forked children give `world` up. Any thread. */
void slc_fork_watch(sluice_world *world);

/* Ends that. False: this process is such a child, and has nothing of the world to close. */
bool slc_fork_forget(sluice_world *world);

#endif
