/* Walks the lists of groups and channels. A rank has few of them, and each asks its gates and its peers' words anew in
 * every step, so none can hold another one up. */
#include "lib/comm/world/lines.h"

#include "lib/base/integer.h"
#include "lib/comm/channel/channel.h"
#include "lib/comm/lane/lane.h"
#include "lib/comm/lane/messages.h"

#include <stdlib.h>

static bool any(const slc_lines *lines)
{
    return atomic_load_explicit(&lines->count, memory_order_acquire) != 0;
}

/* ---- The lists ---- */

void slc_lines_init(slc_lines *lines)
{
    *lines = (slc_lines){0};
    pthread_mutex_init(&lines->lock, NULL);
}

void slc_lines_free_group(slc_group *group)
{
    if (!group) return;
    slc_lane_fini(&group->comm);
    slc_neighbours_view_close(&group->view);
    free(group->members);
    free(group);
}

void slc_lines_free_channel(slc_channel *channel)
{
    if (!channel) return;
    slc_channel_fini(channel);
    free(channel);
}

void slc_lines_fini(slc_lines *lines)
{
    for (slc_group *group; (group = lines->groups);) {
        lines->groups = group->next;
        slc_lines_free_group(group);
    }
    for (slc_channel *channel; (channel = lines->channels);) {
        lines->channels = channel->next;
        slc_lines_free_channel(channel);
    }
    pthread_mutex_destroy(&lines->lock);
}

void slc_lines_add_group(slc_lines *lines, slc_group *group)
{
    pthread_mutex_lock(&lines->lock);
    group->next = lines->groups;
    lines->groups = group;
    atomic_fetch_add(&lines->count, 1);
    pthread_mutex_unlock(&lines->lock);
}

void slc_lines_add_channel(slc_lines *lines, slc_channel *channel)
{
    pthread_mutex_lock(&lines->lock);
    channel->next = lines->channels;
    lines->channels = channel;
    atomic_fetch_add(&lines->count, 1);
    pthread_mutex_unlock(&lines->lock);
}

/* Returns true if there is no failure. After a failure it returns when the thread has let go of the program's memory.
 */
static bool settle(sluice_world *world, sluice_status status)
{
    if (status || slc_failed(&world->failure)) slc_gate_wait(&world->comm.quiet, 1, UINT64_MAX);
    return !status && !slc_failed(&world->failure);
}

static sluice_status wait_for_group(slc_group *group)
{
    return slc_comm_wait(&group->comm, atomic_load_explicit(&group->comm.queue.counts.submitted, memory_order_relaxed));
}

static sluice_status wait_for_channel(slc_channel *channel)
{
    return slc_channel_wait(channel, atomic_load_explicit(&channel->counts.submitted, memory_order_relaxed));
}

void slc_lines_end_group(sluice_world *world, slc_group *group)
{
    slc_lines *lines = &world->lines;
    if (!settle(world, wait_for_group(group))) return;
    pthread_mutex_lock(&lines->lock);
    slc_group **at = &lines->groups;
    while (*at != group) at = &(*at)->next;
    *at = group->next;
    atomic_fetch_sub(&lines->count, 1);
    pthread_mutex_unlock(&lines->lock);
    slc_lines_free_group(group);
}

void slc_lines_end_channel(sluice_world *world, slc_channel *channel)
{
    slc_lines *lines = &world->lines;
    if (!settle(world, wait_for_channel(channel))) return;
    pthread_mutex_lock(&lines->lock);
    slc_channel **at = &lines->channels;
    while (*at != channel) at = &(*at)->next;
    *at = channel->next;
    atomic_fetch_sub(&lines->count, 1);
    pthread_mutex_unlock(&lines->lock);
    slc_lines_free_channel(channel);
}

bool slc_lines_has_channel(const slc_lines *lines, uint32_t number)
{
    for (const slc_channel *c = lines->channels; c; c = c->next)
        if (c->desc.number == number) return true;
    return false;
}

bool slc_lines_has_group(const slc_lines *lines, uint32_t number)
{
    for (const slc_group *g = lines->groups; g; g = g->next)
        if (g->comm.number == number) return true;
    return false;
}

void slc_lines_detach(sluice_world *world)
{
    for (slc_channel *c = world->lines.channels; c; c = c->next) settle(world, wait_for_channel(c));
    for (slc_group *g = world->lines.groups; g; g = g->next) {
        settle(world, wait_for_group(g));
        slc_lane_events_destroy(&g->comm.attached.events);
        slc_stream_destroy(&g->comm.attached.stream);
        g->comm.attached = (slc_attached){0};
        g->comm.scratch.base = NULL;
        g->comm.scratch.bytes = 0;
    }
}

/* ---- On the communication thread ---- */

bool slc_lines_step(slc_lines *lines, uint64_t now_ns)
{
    if (!any(lines)) return false;
    bool progressed = false;
    pthread_mutex_lock(&lines->lock);
    for (slc_channel *c = lines->channels; c; c = c->next) progressed |= slc_channel_step(c, now_ns);
    for (slc_group *g = lines->groups; g && !slc_failed(g->comm.failure); g = g->next)
        progressed |= slc_lane_step(&g->comm, now_ns);
    pthread_mutex_unlock(&lines->lock);
    return progressed;
}

uint64_t slc_lines_due(slc_lines *lines)
{
    uint64_t due = UINT64_MAX;
    if (!any(lines)) return due;
    pthread_mutex_lock(&lines->lock);
    for (const slc_channel *c = lines->channels; c; c = c->next) due = slc_least(due, slc_channel_due(c));
    for (const slc_group *g = lines->groups; g; g = g->next) due = slc_least(due, slc_lane_due(&g->comm));
    pthread_mutex_unlock(&lines->lock);
    return due;
}

void slc_lines_end_waits(slc_lines *lines)
{
    pthread_mutex_lock(&lines->lock);
    for (slc_channel *c = lines->channels; c; c = c->next) slc_channel_end_waits(c);
    for (slc_group *g = lines->groups; g; g = g->next) slc_queue_counts_give_up(&g->comm.queue.counts);
    pthread_mutex_unlock(&lines->lock);
}

uint64_t slc_lines_digest(slc_lines *lines)
{
    uint64_t digest = 1;
    if (!any(lines)) return digest;
    pthread_mutex_lock(&lines->lock);
    for (const slc_channel *c = lines->channels; c; c = c->next) digest = slc_digest_add(digest, slc_channel_digest(c));
    for (const slc_group *g = lines->groups; g; g = g->next) digest = slc_digest_add(digest, slc_lane_digest(&g->comm));
    pthread_mutex_unlock(&lines->lock);
    return digest;
}

uint32_t slc_lines_submitted(slc_lines *lines)
{
    uint32_t submitted = 0;
    if (!any(lines)) return submitted;
    pthread_mutex_lock(&lines->lock);
    for (const slc_channel *c = lines->channels; c; c = c->next)
        submitted += atomic_load_explicit(&c->counts.submitted, memory_order_relaxed);
    for (const slc_group *g = lines->groups; g; g = g->next)
        submitted += atomic_load_explicit(&g->comm.queue.counts.submitted, memory_order_relaxed);
    pthread_mutex_unlock(&lines->lock);
    return submitted;
}

/* Returns a rank, by its number in the world, for which the group's oldest operation still waits; -1: none is seen to
 * be missing. */
static int find_missing(const slc_comm *comm)
{
    slc_open_message lacking;
    if (comm->active.first == comm->active.taken) return -1;
    const slc_active_op *oldest = &comm->active.ops[comm->active.first % SLC_ACTIVE];
    for (int i = 0; i < comm->neighbours->count; i++) {
        const int rank = comm->neighbours->list[i];
        const uint32_t ready = atomic_load_explicit(&slc_peer_words(comm, rank)->ready, memory_order_acquire);
        if ((int32_t)(ready - (oldest->wire + 1)) < 0) return slc_rank_in_world(comm, rank);
    }
    return slc_messages_oldest(comm, &lacking) ? slc_rank_in_world(comm, lacking.peer) : -1;
}

static bool group_waited_for(slc_comm *comm, int *peer, const char **what)
{
    if (!slc_queue_counts_awaited(&comm->queue.counts)) return false;
    *peer = find_missing(comm);
    *what = slc_lane_next_name(comm);
    return true;
}

bool slc_lines_wait(slc_lines *lines, int *peer, const char **what)
{
    bool found = false;
    if (!any(lines)) return false;
    pthread_mutex_lock(&lines->lock);
    for (slc_channel *c = lines->channels; c && !found; c = c->next) found = slc_channel_waited_for(c, peer, what);
    for (slc_group *g = lines->groups; g && !found; g = g->next) found = group_waited_for(&g->comm, peer, what);
    pthread_mutex_unlock(&lines->lock);
    return found;
}

static bool has_left(const sluice_world *world, int rank, uint64_t limit_ns)
{
    const slc_departure *gone = &world->control.departures[rank];
    return gone->left && gone->left_ns < limit_ns;
}

static int departed_member(const sluice_world *world, const slc_comm *comm, uint64_t limit_ns)
{
    const uint32_t submitted = atomic_load_explicit(&comm->queue.wire_submitted, memory_order_relaxed);
    const uint32_t completed = atomic_load_explicit(&comm->active.wire_completed, memory_order_relaxed);
    for (int i = 0; submitted != completed && i < comm->size; i++)
        if (has_left(world, comm->members[i], limit_ns)) return comm->members[i];
    return -1;
}

int slc_lines_departed(sluice_world *world, uint64_t limit_ns)
{
    slc_lines *lines = &world->lines;
    int rank = -1;
    if (!any(lines)) return rank;
    pthread_mutex_lock(&lines->lock);
    for (const slc_channel *c = lines->channels; c && rank < 0; c = c->next)
        if (slc_channel_unfinished(c) && has_left(world, c->peer, limit_ns)) rank = c->peer;
    for (const slc_group *g = lines->groups; g && rank < 0; g = g->next)
        rank = departed_member(world, &g->comm, limit_ns);
    pthread_mutex_unlock(&lines->lock);
    return rank;
}
