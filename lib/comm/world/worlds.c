/* A list of worlds under one lock, which fork holds too. The child's handler needs neither memory nor a lock that
 * another thread may hold: those threads do not exist in the child, so their locks may be taken for ever.
 * fork_test.c covers this file. */
#include "lib/comm/world/worlds.h"

#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/comm/world/lines.h"
#include "lib/comm/world/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sluice_world *worlds;
static bool handled; /* the handlers below are registered */

/* ---- Fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void give_up(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* Puts a page of this process alone in its place, so that code which reads the page need not ask. */
static void give_up_page(slc_control_page *page)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (page) (void)mmap(page, SLC_PAGE_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
}

static void give_up_neighbours(slc_neighbours *neighbours)
{
    for (int rank = 0; neighbours->peers && rank < neighbours->size; rank++) {
        slc_neighbour *peer = &neighbours->peers[rank];
        give_up(&peer->socket);
        give_up(&peer->doorbell);
        give_up_page(peer->page);
    }
    give_up(&neighbours->page_fd);
    give_up(&neighbours->doorbell);
    give_up(&neighbours->listener);
    give_up_page(neighbours->page);
}

static void end_waits(sluice_world *world)
{
    slc_comm *comm = &world->comm;
    atomic_store(&world->collects_done.value, atomic_load(&world->collects_asked) + SLC_FAR_BEYOND);
    slc_queue_counts_give_up(&comm->queue.counts);
    pthread_mutex_init(&world->lines.lock, NULL);
    slc_lines_end_waits(&world->lines);
    atomic_store(&comm->quiet.value, 1);
}

static void give_up_world(sluice_world *world)
{
    world->forked = true;
    world->running = false;
    slc_failure_override(&world->failure, SLUICE_ERR_ORDER,
                         "this process was forked from rank %d, which alone may use its world: call Sluice in the "
                         "parent, or create a world of this process's own",
                         world->config.rank);
    pthread_mutex_init(&world->collect_lock, NULL);
    for (int i = 0; i < world->control.link_count; i++) give_up(&world->control.links[i].fd);
    give_up_neighbours(&world->neighbours);
    slc_transport_give_up(&world->transport);
    end_waits(world);
}

static void in_child(void)
{
    for (sluice_world *world = worlds; world; world = world->next)
        if (!world->forked) give_up_world(world);
    pthread_mutex_unlock(&lock);
}

/* ---- Exit ---- */

/* Fails the worlds that this process has not left. Those of a forked child are not running. */
static void say_farewell(void)
{
    char line[SLC_ERROR_BYTES];
    const char *error = sluice_last_error(); /* the exiting thread's */
    snprintf(line, sizeof line, "it exited without leaving the world; its last error: %s", error);
    if (pthread_mutex_trylock(&lock)) return; /* another thread is leaving or forking right now */
    for (sluice_world *world = worlds; world; world = world->next)
        if (world->running && (*error || slc_failed(&world->failure)))
            slc_comm_fail(&world->comm, SLUICE_ERR_PEER, line);
    pthread_mutex_unlock(&lock);
}

/* ---- The list ---- */

static void add_handlers(void)
{
    handled = !pthread_atfork(before_fork, in_parent, in_child) && !atexit(say_farewell);
}

sluice_status slc_worlds_add(sluice_world *world)
{
    pthread_once(&once, add_handlers);
    if (!handled) return slc_error(SLUICE_ERR_MEMORY, "handlers of fork and exit");
    pthread_mutex_lock(&lock);
    world->next = worlds;
    worlds = world;
    pthread_mutex_unlock(&lock);
    return SLUICE_OK;
}

bool slc_worlds_remove(sluice_world *world)
{
    pthread_mutex_lock(&lock);
    for (sluice_world **at = &worlds; *at && !world->forked; at = &(*at)->next)
        if (*at == world) {
            *at = world->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    return !world->forked;
}
