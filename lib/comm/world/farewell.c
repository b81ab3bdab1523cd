/* A process that ends without leaving its worlds, as one does that returns from main after an error, would only be
 * missed. The others hear its last error instead: when the process exits, every world that it has not left fails. */
#include "lib/comm/world/world.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sluice_world *worlds; /* that are owed a farewell */

static void say_farewell(void)
{
    char line[SLC_WORDS];
    const char *error = sluice_last_error(); /* of the thread that exits */
    snprintf(line, sizeof line, "it exited without leaving the world; its last error: %s", error);
    if (pthread_mutex_trylock(&lock)) return; /* another thread is just leaving, or did so when this one was forked */
    for (sluice_world *world = worlds; world; world = world->sibling)
        if (world->owner == getpid() && (*error || slc_failed(&world->failure)))
            slc_comm_fail(&world->comm, SLUICE_ERR_PEER, line);
    pthread_mutex_unlock(&lock);
}

sluice_status slc_farewell_owe(sluice_world *world)
{
    static bool registered;
    pthread_mutex_lock(&lock);
    if (!registered) registered = !atexit(say_farewell);
    world->sibling = worlds;
    worlds = world;
    bool good = registered;
    pthread_mutex_unlock(&lock);
    return good ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "what is to be said at exit");
}

void slc_farewell_waive(sluice_world *world)
{
    pthread_mutex_lock(&lock);
    for (sluice_world **at = &worlds; *at; at = &(*at)->sibling)
        if (*at == world) {
            *at = world->sibling;
            break;
        }
    pthread_mutex_unlock(&lock);
}
