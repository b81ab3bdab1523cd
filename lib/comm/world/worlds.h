/* The worlds of this process, and what becomes of them when it forks and when it exits.
 *
 * A process that exits without leaving its worlds, as one does that returns from main after an error, would only be
 * missed. The other ranks hear its last error instead: at exit every world that it has not left fails.
 *
 * A child that is forked from a rank is no rank: it has neither the communication thread nor a voice. It gives up at
 * once whatever would keep the other ranks from noticing its parent's death, and memory that it would share with them;
 * every call on the world is an error from then on. Only fork() is seen. Programs that exec starts (system,
 * posix_spawn) keep no descriptor that is closed on exec. A child that is forked while a world is being made or
 * destroyed keeps what there is of it until it ends or calls exec. */
#ifndef SLC_COMM_WORLDS_H
#define SLC_COMM_WORLDS_H

#include <sluice/world.h>
#include <stdbool.h>

/* From here on forked children give `world` up, and exiting without leaving it is told. Any thread. Errors: MEMORY. */
sluice_status slc_worlds_add(sluice_world *world);

/* Ends that: the world is left as it should be. Returns false in a forked child, which has nothing of the world to
 * close. */
bool slc_worlds_remove(sluice_world *world);

#endif
