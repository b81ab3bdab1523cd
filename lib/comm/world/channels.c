/* Opens and closes ends of channels. The ranks meet twice: first all say what they are about to open, so that no rank's
 * words are cleared while another one still uses them; after that they have been cleared. lines_test.c covers this
 * file.
 */
#include "lib/comm/channels.h"

#include "lib/base/status.h"
#include "lib/comm/channel/channel.h"
#include "lib/comm/world/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank's part of the agreement. Both ends of a channel add the same number to `balance`, one of them negated, so that
 * the sum over all ranks is 0 exactly where every end has its other one. */
typedef struct {
    uint64_t balance;
    uint64_t refused; /* 1: this rank cannot open its ends */
} intent;

static uint64_t scramble(uint64_t value)
{
    value = (value ^ (value >> 31)) * 0xff51afd7ed558ccdu;
    return (value ^ (value >> 29)) * 0x9e3779b97f4a7c15u;
}

static uint64_t key_of(const slc_channel_desc *desc)
{
    return scramble(((uint64_t)desc->number << 32 | (uint64_t)desc->from << 16 | (uint64_t)desc->to) + 1);
}

static sluice_status check_desc(const sluice_world *world, const slc_channel_desc *descs, uint32_t index)
{
    const slc_comm *comm = &world->comm;
    const slc_channel_desc *desc = &descs[index];
    if (!desc->name) return slc_error(SLUICE_ERR_ARGUMENT, "channel %u has no name", desc->number);
    if (desc->from < 0 || desc->from >= comm->size || desc->to < 0 || desc->to >= comm->size ||
        desc->from == desc->to || (desc->from != comm->rank && desc->to != comm->rank))
        return slc_error(SLUICE_ERR_ARGUMENT, "channel \"%s\" from rank %d to rank %d, opened on rank %d of %d",
                         desc->name, desc->from, desc->to, comm->rank, comm->size);
    bool used = desc->number >= SLC_CHANNELS_MOST || slc_lines_has_channel(&world->lines, desc->number);
    for (uint32_t i = 0; i < index; i++) used |= descs[i].number == desc->number;
    if (used)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "channel \"%s\" has number %u; give one below %d of which rank %d has no other end open",
                         desc->name, desc->number, SLC_CHANNELS_MOST, comm->rank);
    const int peer = desc->from == comm->rank ? desc->to : desc->from;
    if (!slc_is_neighbour(comm->neighbours, peer) && !slc_transport_has_messages(comm->transport))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "channel \"%s\": rank %d is reached through messages, which this world's transport lacks: set "
                         "SLUICE_COMM_TRANSPORT=ucx (config.transport) on every rank",
                         desc->name, peer);
    return SLUICE_OK;
}

static sluice_status make_ends(sluice_world *world, const slc_channel_desc *descs, uint32_t count,
                               slc_channel **channels)
{
    sluice_status status = SLUICE_OK;
    if (world->comm.stream_order.on)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "channels work in the host's memory only");
    for (uint32_t i = 0; !status && i < count; i++) {
        status = check_desc(world, descs, i);
        if (status) break;
        channels[i] = calloc(1, sizeof *channels[i]);
        status = channels[i] ? slc_channel_init(channels[i], &world->comm, &descs[i])
                             : slc_error(SLUICE_ERR_MEMORY, "channel \"%s\"", descs[i].name);
    }
    return status;
}

/* Checks that every rank can open its ends, and that every end has its other one. */
static sluice_status agree(sluice_world *world, const slc_channel_desc *descs, uint32_t count, sluice_status own)
{
    const size_t size = (size_t)world->config.size;
    slc_kept_error kept;
    intent mine = {.refused = own != SLUICE_OK}, *all = calloc(size, sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "channels of %zu ranks", size);
    slc_error_keep(&kept);
    for (uint32_t i = 0; !own && i < count; i++) {
        const uint64_t key = key_of(&descs[i]);
        mine.balance += descs[i].from == world->config.rank ? key : 0 - key;
    }
    sluice_status status = sluice_world_all_gather(world, &mine, sizeof mine, all);
    uint64_t balance = 0, refusing = size;
    for (size_t rank = 0; !status && rank < size; rank++) {
        balance += all[rank].balance;
        if (all[rank].refused && refusing == size) refusing = rank;
    }
    free(all);
    if (status) return status;
    if (own) return slc_error_restore(&kept, own);
    if (refusing < size)
        return slc_error(SLUICE_ERR_MISMATCH, "channels: rank %llu cannot open its ends", (unsigned long long)refusing);
    if (!balance) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MISMATCH, "channels: an end has no other end: the two ranks of a channel must name the "
                                          "same ranks and the same number, in the same call");
}

static void clear_words(slc_channel *channel)
{
    memset(channel->own->offers, 0, sizeof channel->own->offers);
    atomic_store(&channel->own->offered, 0);
    atomic_store(&channel->own->asked, 0);
    atomic_store(&channel->own->taken, 0);
}

sluice_status slc_channels_open(slc_comm *comm, const slc_channel_desc *descs, uint32_t count, slc_channel **channels)
{
    sluice_world *world = slc_comm_world(comm);
    for (uint32_t i = 0; i < count; i++) channels[i] = NULL;
    sluice_status status = agree(world, descs, count, make_ends(world, descs, count, channels));
    for (uint32_t i = 0; !status && i < count; i++) clear_words(channels[i]);
    if (!status) status = sluice_world_barrier(world);
    for (uint32_t i = 0; i < count; i++) {
        if (!status) {
            slc_lines_add_channel(&world->lines, channels[i]);
            continue;
        }
        slc_lines_free_channel(channels[i]);
        channels[i] = NULL;
    }
    return status;
}

void slc_channel_notify(slc_channel *channel)
{
    slc_channel_go_on(channel, &slc_comm_world(channel->comm)->lines.lock);
}

void slc_channels_close(slc_channel **channels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (channels[i]) slc_lines_end_channel(slc_comm_world(channels[i]->comm), channels[i]);
        channels[i] = NULL;
    }
}

void slc_comm_name_stages(slc_comm *comm, uint32_t stages)
{
    atomic_store_explicit(&slc_comm_world(comm)->control.stages, stages, memory_order_relaxed);
}
