/* The calls of a program at its end of a channel: submission with its checks, and waiting. */
#include "lib/comm/channel/channel.h"

#include "lib/base/clock.h"
#include "lib/base/gate_delay.h"
#include "lib/base/status.h"
#include "lib/comm/lane/spans.h"

#include <stdlib.h>

sluice_status slc_channel_init(slc_channel *channel, slc_comm *comm, const slc_channel_desc *desc)
{
    *channel = (slc_channel){.comm = comm, .desc = *desc, .sends = desc->from == comm->rank};
    channel->peer = channel->sends ? desc->to : desc->from;
    channel->own = &comm->neighbours->page->channels[desc->number];
    if (slc_is_neighbour(comm->neighbours, channel->peer))
        channel->there = &comm->neighbours->peers[channel->peer].page->channels[desc->number];
    slc_gate_init(&channel->counts.completed);
    channel->queue = calloc(SLC_TRANSFERS, sizeof *channel->queue);
    return channel->queue ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "channel \"%s\"", desc->name);
}

void slc_channel_fini(slc_channel *channel)
{
    free(channel->queue);
    channel->queue = NULL;
}

static sluice_status check_transfer(const slc_channel *channel, const slc_channel_transfer *transfer)
{
    const slc_comm *comm = channel->comm;
    if (!comm->attached.stream.device)
        return slc_error(SLUICE_ERR_ORDER, "channel \"%s\": attach memory first", channel->desc.name);
    if (!transfer->bytes || !slc_in_arena(comm, transfer->data, transfer->bytes))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "channel \"%s\", %s: %llu bytes; give at least one, in the attached arena", channel->desc.name,
                         slc_transfer_name(transfer), (unsigned long long)transfer->bytes);
    return SLUICE_OK;
}

/* Asks the receiver of a transfer through memory to wake this rank when it has taken the transfer, because the offer
 * may not have asked for that (slc_channel_transfer.end_may_wait). Either the receiver sees the request, or this rank
 * sees that the transfer is taken. */
static void ask_for_ring(slc_channel *channel, uint32_t index)
{
    atomic_fetch_add(&channel->own->asked, 1);
    slc_gate_delay();
    if ((int32_t)(atomic_load(&channel->there->taken) - index) >= 0) slc_comm_notify(channel->comm);
}

/* Waits until `index` transfers are complete or the world has failed. `waiter` is the calling thread if it needs just
 * these transfers, else 0. */
static void wait_for(slc_channel *channel, uint32_t index, uint64_t waiter)
{
    const bool asks = channel->there && channel->sends && !slc_gate_passed(&channel->counts.completed, index);
    if (asks) ask_for_ring(channel, index);
    slc_queue_counts_wait(&channel->counts, index, &channel->comm->program.waiter, waiter);
    if (asks) atomic_fetch_sub(&channel->own->asked, 1);
}

sluice_status slc_channel_submit(slc_channel *channel, const slc_channel_transfer *transfers, uint32_t count,
                                 uint32_t *index)
{
    slc_comm *comm = channel->comm;
    sluice_status status = slc_failure_get(comm->failure);
    uint32_t submitted = atomic_load_explicit(&channel->counts.submitted, memory_order_relaxed);
    for (uint32_t i = 0; !status && i < count; i++) status = check_transfer(channel, &transfers[i]);
    if (status) return status;
    atomic_store_explicit(&comm->program.submitter, slc_thread_number(), memory_order_relaxed);
    if (index) *index = submitted;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t completed = atomic_load_explicit(&channel->counts.completed.value, memory_order_acquire);
        if (submitted - completed >= SLC_TRANSFERS) {
            slc_comm_notify(comm);
            wait_for(channel, submitted + 1 - SLC_TRANSFERS, 0);
            status = slc_failure_get(comm->failure);
            if (status) return status;
        }
        channel->queue[submitted % SLC_TRANSFERS] = transfers[i];
        atomic_store_explicit(&channel->counts.submitted, ++submitted, memory_order_release);
    }
    slc_comm_notify(comm);
    return SLUICE_OK;
}

/* True if this end can only wait for the other end's offer. The caller has raised a count before, and the sender rings
 * after it has raised `offered`. So this function sees the offer, or the thread that is rung sees the count. */
static bool waits_for_offer(const slc_channel *channel)
{
    if (!channel->there || channel->sends || slc_transport_imitates(channel->comm->transport)) return false;
    slc_gate_delay();
    return atomic_load(&channel->there->offered) == atomic_load(&channel->own->taken);
}

/* Offers on the calling thread what may be offered now, because telling the communication thread takes longer. False:
 * the communication thread must do it, which may also be at this end just now. */
static bool offer_at_once(slc_channel *channel, pthread_mutex_t *lock)
{
    if (!channel->there || !channel->sends || slc_transport_imitates(channel->comm->transport)) return false;
    if (pthread_mutex_trylock(lock)) return false;
    const bool next = channel->taken != atomic_load_explicit(&channel->counts.submitted, memory_order_relaxed);
    const bool light = next && channel->queue[channel->taken % SLC_TRANSFERS].end_may_wait;
    while (light && slc_channel_step(channel, slc_clock_ns())) continue;
    pthread_mutex_unlock(lock);
    return light && !slc_failed(channel->comm->failure);
}

void slc_channel_go_on(slc_channel *channel, pthread_mutex_t *lock)
{
    if (waits_for_offer(channel) || offer_at_once(channel, lock)) return;
    slc_comm_notify(channel->comm);
}

slc_gate *slc_channel_completed(slc_channel *channel)
{
    return &channel->counts.completed;
}

bool slc_channel_arrived(slc_channel *channel, uint32_t count)
{
    const bool offers = channel->there && channel->sends;
    return slc_gate_passed(&channel->counts.completed, count) ||
           (offers && (int32_t)(atomic_load(&channel->there->taken) - count) >= 0);
}

sluice_status slc_channel_wait(slc_channel *channel, uint32_t index)
{
    wait_for(channel, index, slc_thread_number());
    return slc_queue_counts_result(&channel->counts, index, channel->comm->failure);
}

uint64_t slc_channel_bytes(const slc_channel *channel)
{
    return atomic_load_explicit(&channel->bytes, memory_order_relaxed);
}
