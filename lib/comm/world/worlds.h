/* The worlds of this process, and what happens to them when it forks and when it exits.
 *
 * A process may exit without leaving its worlds, for example by returning from main after an error. So that the other
 * ranks hear its last error then, and do not just miss it, every world that it has not left fails at exit.
 *
 * A child that is forked from a rank is no rank: it has no communication thread and cannot speak to the other ranks. It
 * gives up at once whatever would keep them from noticing its parent's death, and the memory that it would share with
 * them; every call on the world is an error in the child. Only fork() is seen. Programs that exec starts (system,
 * posix_spawn) keep no descriptor that is closed on exec. A child that is forked while a world is being made or
 * destroyed keeps what there is of it until it ends or calls exec. */
#pragma once

#include <sluice/world.h>
#include <stdbool.h>

/* From this call on forked children give `world` up, and the other ranks are told when this process exits without
 * leaving it. Any thread. Errors: MEMORY. */
sluice_status slc_worlds_add(sluice_world *world);

/* Undoes slc_worlds_add, because the world is being left. Returns false in a forked child, which has nothing of the
 * world to close. Any thread. */
bool slc_worlds_remove(sluice_world *world);
