/* Makes groups. A group is a lane like the world's, whose neighbours and messages are those of its members.
 * lines_test.c covers this file. */
#include "lib/comm/groups.h"

#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/comm/lane/lane.h"
#include "lib/comm/lane/spans.h"
#include "lib/comm/world/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank's part of the agreement. */
typedef struct {
    uint64_t digest; /* of the members; 0: it is in no group */
    uint32_t count;  /* of members */
    uint32_t number;
    uint32_t messages; /* 1: it needs messages to reach some member */
    uint32_t refused;  /* 1: it cannot make its group */
} intent;

static sluice_status check_members(const sluice_world *world, uint32_t number, const int *members, int count)
{
    bool own = false;
    if (!number || number >= SLC_LANES_MOST || slc_lines_has_group(&world->lines, number))
        return slc_error(SLUICE_ERR_ARGUMENT, "group %u: give a number from 1 to %d that rank %d has not in use",
                         number, SLC_LANES_MOST - 1, world->config.rank);
    if (count < 0 || count > world->config.size)
        return slc_error(SLUICE_ERR_ARGUMENT, "group %u: %d members of %d ranks", number, count, world->config.size);
    for (int i = 0; i < count; i++) {
        own |= members[i] == world->config.rank;
        if (members[i] < 0 || members[i] >= world->config.size || (i && members[i] <= members[i - 1]))
            return slc_error(SLUICE_ERR_ARGUMENT, "group %u: rank %d as member %d; name ranks of the world, ascending",
                             number, members[i], i);
    }
    if (count && !own)
        return slc_error(SLUICE_ERR_ARGUMENT, "group %u: rank %d is not among its members", number, world->config.rank);
    if (world->comm.stream_order.on)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "group %u: groups work in the host's memory only", number);
    return SLUICE_OK;
}

static int number_in(const int *members, int rank)
{
    int i = 0;
    while (members[i] != rank) i++;
    return i;
}

static sluice_status make_group(sluice_world *world, uint32_t number, const int *members, int count, slc_group **out)
{
    slc_group *group = calloc(1, sizeof *group);
    if (!group) return slc_error(SLUICE_ERR_MEMORY, "group %u", number);
    const int own = number_in(members, world->config.rank);
    group->members = malloc((size_t)count * sizeof *group->members);
    sluice_status status = group->members ? slc_neighbours_view(&world->neighbours, members, count, own, &group->view)
                                          : slc_error(SLUICE_ERR_MEMORY, "group %u", number);
    if (!status) {
        memcpy(group->members, members, (size_t)count * sizeof *members);
        status =
            slc_lane_init(&group->comm, own, count, &world->failure, &group->view, &world->transport, &group->history);
        group->comm.whole = &world->comm;
        group->comm.number = number;
        group->comm.members = group->members;
    }
    *out = group;
    return status;
}

static sluice_status refuse(const intent *all, int size, uint32_t number)
{
    for (int rank = 0; rank < size; rank++) {
        uint32_t same = 0;
        if (all[rank].refused)
            return slc_error(SLUICE_ERR_MISMATCH, "group %u: rank %d cannot make its group", number, rank);
        if (all[rank].number != number)
            return slc_error(SLUICE_ERR_MISMATCH, "group %u: rank %d makes group %u", number, rank, all[rank].number);
        for (int other = 0; other < size; other++) same += all[other].digest == all[rank].digest;
        if (all[rank].count && same != all[rank].count)
            return slc_error(SLUICE_ERR_MISMATCH,
                             "group %u: rank %d names %u members, and %u ranks name the same ones: every member must "
                             "name the same members",
                             number, rank, all[rank].count, same);
    }
    return SLUICE_OK;
}

/* Checks that every rank can make its group and that members name each other; *messages then says if some pair of this
 * rank's members needs messages. */
static sluice_status agree(sluice_world *world, const intent *mine, sluice_status own, bool *messages)
{
    const int size = world->config.size;
    slc_kept_error kept;
    intent *all = calloc((size_t)size, sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "groups of %d ranks", size);
    slc_error_keep(&kept);
    sluice_status status = sluice_world_all_gather(world, mine, sizeof *mine, all);
    if (!status && own) status = slc_error_restore(&kept, own);
    if (!status && !world->imagined) status = refuse(all, size, mine->number);
    for (int rank = 0; !status && rank < size; rank++)
        *messages |= all[rank].messages && all[rank].digest == mine->digest;
    free(all);
    return status;
}

static void clear_words(slc_lane_words *words)
{
    atomic_store(&words->ready, 0);
    atomic_store(&words->done, 0);
    for (int i = 0; i < SLC_SIGNATURES; i++) atomic_store_explicit(&words->signature[i], 0, memory_order_relaxed);
}

sluice_status slc_comm_group_create(slc_comm *whole, uint32_t number, const int *members, int count, slc_comm **out)
{
    sluice_world *world = slc_comm_world(whole);
    slc_group *group = NULL;
    bool messages = false;
    sluice_status status = check_members(world, number, members, count);
    if (!status && count) status = make_group(world, number, members, count, &group);
    intent mine = {.number = number, .refused = status != SLUICE_OK};
    if (group && !status) {
        mine.digest = slc_fnv(SLC_FNV_START, members, (size_t)count * sizeof *members) | 1;
        mine.count = (uint32_t)count;
        mine.messages = world->imagined ? count > 1 && world->any_messages : group->view.count < count - 1;
    }
    status = agree(world, &mine, status, &messages);
    if (!status && group) clear_words(slc_own_words(&group->comm));
    if (!status) status = sluice_world_barrier(world);
    if (status) {
        slc_lines_free_group(group);
        return status;
    }
    *out = NULL;
    if (!group) return SLUICE_OK;
    group->comm.any_messages = messages;
    slc_lines_add_group(&world->lines, group);
    *out = &group->comm;
    return SLUICE_OK;
}

sluice_status slc_comm_group_attach(slc_comm *comm, void *scratch, uint64_t scratch_bytes)
{
    sluice_world *world = slc_comm_world(comm);
    const slc_attached *whole = &world->comm.attached;
    slc_group *group = (slc_group *)(void *)comm;
    if (!whole->segment) return slc_error(SLUICE_ERR_ORDER, "a group's memory: the world has nothing attached");
    if (scratch_bytes && !slc_in_arena(&world->comm, scratch, scratch_bytes))
        return slc_error(SLUICE_ERR_ARGUMENT, "a group's scratch is not in the attached arena");
    sluice_status status = comm->attached.stream.device
                               ? SLUICE_OK
                               : slc_stream_create_first(whole->segment->device, 1, &comm->attached.stream);
    if (status) return status;
    slc_neighbours_view_attach(&group->view, &world->neighbours, group->members);
    comm->attached.segment = whole->segment;
    comm->attached.base = whole->base;
    comm->attached.bytes = whole->bytes;
    comm->scratch = (slc_scratch){.base = scratch, .bytes = scratch_bytes};
    return SLUICE_OK;
}

void slc_comm_group_destroy(slc_comm *comm)
{
    if (comm) slc_lines_end_group(slc_comm_world(comm), (slc_group *)(void *)comm);
}
