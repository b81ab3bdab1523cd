/* The transfers of one end of a channel, step by step. Between ranks of one host a sender offers the place of its data
 * and the receiver takes it: copying is the receiver's work, a chunk at a time, so that nothing else waits long.
 * channel_test.c covers this file. */
#include "lib/base/gate_delay.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/comm/channel/channel.h"
#include "lib/comm/channel/pieces.h"
#include "lib/comm/lane/spans.h"
#include "lib/kernels/copy/copy.h"

static const uint64_t chunk_bytes = 256 << 10;

static void fail_transfer(slc_channel *channel, const slc_channel_transfer *transfer, sluice_status status)
{
    slc_failure_set(channel->comm->failure, status, SLC_TELL_OWN, "channel \"%s\", %s: %s", channel->desc.name,
                    slc_transfer_name(transfer), sluice_last_error());
}

static bool run_hook(slc_channel *channel, const slc_channel_transfer *transfer, sluice_status (*hook)(void *))
{
    sluice_status status = hook ? hook(transfer->context) : SLUICE_OK;
    if (status) fail_transfer(channel, transfer, status);
    return !status;
}

/* ---- Direct ---- */

/* Returns when bytes that go through memory would be over on the imitated network, or 0 without one. A transport that
 * imitates a network occupies it for them. Egress and ingress have clocks of their own, so each end asks for its own
 * alone. */
static uint64_t charge(const slc_comm *comm, uint64_t sent, uint64_t received, uint32_t latencies)
{
    const slc_transport *transport = comm->transport;
    if (!slc_transport_imitates(transport) || !(sent + received)) return 0;
    return transport->table->charge(transport->self, sent, received, latencies);
}

/* Offers a transfer to the receiver. On an imitated network its end is due at a time, even if the end may wait
 * (end_may_wait). */
static void offer(slc_channel *channel, slc_open_transfer *open)
{
    const slc_comm *comm = channel->comm;
    const slc_channel_transfer *transfer = &open->transfer;
    const uint64_t begin_ns = charge(comm, 1, 0, 0), end_ns = charge(comm, transfer->bytes - 1, 0, 0);
    open->due_ns = slc_most(begin_ns, end_ns);
    channel->own->offers[open->index % SLC_OFFERS] =
        (slc_offer){.offset = (uint64_t)((const char *)transfer->data - comm->attached.base),
                    .bytes = transfer->bytes,
                    .label = transfer->label,
                    .begin_ns = begin_ns,
                    .rings = !transfer->end_may_wait || slc_transport_imitates(comm->transport)};
    slc_gate_delay();
    atomic_store(&channel->own->offered, open->index + 1);
    slc_gate_delay();
    atomic_fetch_add_explicit(&channel->bytes, transfer->bytes, memory_order_relaxed);
    slc_neighbours_ring_one(channel->comm->neighbours, channel->peer);
}

static bool is_offered(const slc_channel *channel, const slc_open_transfer *open)
{
    const uint32_t offered = atomic_load_explicit(&channel->there->offered, memory_order_acquire);
    return (int32_t)(offered - (open->index + 1)) >= 0;
}

/* Looks for the sender's offer. True if its data may be read; open->source is then where it lies. */
static bool find_offer(slc_channel *channel, slc_open_transfer *open)
{
    const slc_segment *segment = &channel->comm->neighbours->peers[channel->peer].segment;
    if (!is_offered(channel, open)) return false;
    const slc_offer found = channel->there->offers[open->index % SLC_OFFERS];
    if (!slc_transfer_fits(channel, open, found.bytes, found.label)) return false;
    if (found.bytes > segment->bytes || found.offset > segment->bytes - found.bytes) {
        slc_failure_set(channel->comm->failure, SLUICE_ERR_FORMAT, SLC_TELL_FACT,
                        "channel \"%s\", transfer %u: rank %d offers bytes that are not in its arena",
                        channel->desc.name, open->index, channel->peer);
        return false;
    }
    open->source = (const char *)segment->base + found.offset;
    open->begin_ns = found.begin_ns;
    open->rings = found.rings;
    open->met = true;
    return true;
}

static void copy_chunk(slc_channel *channel, slc_open_transfer *open)
{
    const slc_channel_transfer *transfer = &open->transfer;
    const uint64_t bytes = slc_least(transfer->bytes - open->copied, chunk_bytes);
    sluice_stream *stream = &channel->comm->attached.stream;
    char *to = (char *)transfer->data + open->copied;
    const char *from = open->source + open->copied;
    sluice_status status = slc_exceeds_cache(2 * transfer->bytes) ? slc_copy_past_cache(stream, to, from, bytes)
                                                                  : slc_copy(stream, to, from, bytes);
    if (status) fail_transfer(channel, transfer, status);
    open->copied += bytes;
}

/* Copies the next chunk of the oldest transfer that has not arrived in full. True if it did. */
static bool take(slc_channel *channel, uint64_t now_ns)
{
    slc_open_transfer *open = NULL;
    for (uint32_t i = channel->first; i != channel->taken && (!open || open->moved); i++)
        open = slc_open_transfer_at(channel, i);
    if (!open || open->moved || (!open->met && !find_offer(channel, open))) return false;
    if (open->begin_ns > now_ns) return false;
    if (!open->charged) open->due_ns = charge(channel->comm, 0, open->transfer.bytes, open->late ? 2 : 1);
    open->charged = true;
    copy_chunk(channel, open);
    if (open->copied < open->transfer.bytes) return true;
    open->moved = true;
    slc_gate_delay();
    atomic_store(&channel->own->taken, open->index + 1);
    slc_gate_delay();
    if (open->rings || atomic_load(&channel->there->asked))
        slc_neighbours_ring_one(channel->comm->neighbours, channel->peer);
    return true;
}

/* True if the receiver has taken a transfer that this end offered. */
static bool was_taken(const slc_channel *channel, const slc_open_transfer *open)
{
    const uint32_t taken = atomic_load(&channel->there->taken); /* after ask_while_full has asked */
    return (int32_t)(taken - (open->index + 1)) >= 0;
}

/* Asks the receiver to wake this end while as many transfers are open as may be, because the next one cannot start
 * before the first of them ends. Returns true if it has asked just now: the receiver may have taken that first transfer
 * before it could see the request. */
static bool ask_while_full(slc_channel *channel)
{
    const bool full = channel->there && channel->sends && channel->taken - channel->first == SLC_OFFERS;
    if (full == channel->full) return false;
    channel->full = full;
    if (full)
        atomic_fetch_add(&channel->own->asked, 1);
    else
        atomic_fetch_sub(&channel->own->asked, 1);
    return full;
}

/* ---- In order ---- */

static bool start_next(slc_channel *channel)
{
    if (channel->taken == atomic_load_explicit(&channel->counts.submitted, memory_order_acquire)) return false;
    if (channel->taken - channel->first == SLC_OFFERS) return false;
    const slc_channel_transfer *transfer = &channel->queue[channel->taken % SLC_TRANSFERS];
    if (!slc_counts_passed(transfer->counts, transfer->count_count)) return false;
    if (!run_hook(channel, transfer, transfer->start)) return true;
    slc_open_transfer *open = slc_open_transfer_at(channel, channel->taken);
    *open = (slc_open_transfer){.transfer = *transfer, .index = channel->taken};
    channel->taken++;
    if (!channel->there)
        slc_pieces_begin(channel, open);
    else if (channel->sends)
        offer(channel, open);
    else
        open->late = is_offered(channel, open);
    return true;
}

static bool is_over(const slc_channel *channel, const slc_open_transfer *open, uint64_t now_ns)
{
    if (!channel->there) return open->moved && !open->pending;
    return (channel->sends ? was_taken(channel, open) : open->moved) && open->due_ns <= now_ns;
}

static bool complete_first(slc_channel *channel, uint64_t now_ns)
{
    if (channel->first == channel->taken) return false;
    const slc_open_transfer *open = slc_open_transfer_at(channel, channel->first);
    if (!is_over(channel, open, now_ns)) return false;
    if (!run_hook(channel, &open->transfer, open->transfer.end)) return true;
    const bool counted = channel->there && channel->sends; /* when it was offered */
    if (!counted) atomic_fetch_add_explicit(&channel->bytes, open->transfer.bytes, memory_order_relaxed);
    channel->first++;
    atomic_store_explicit(&channel->counts.finished, channel->first, memory_order_release);
    slc_gate_post(&channel->counts.completed, channel->first);
    return true;
}

bool slc_channel_step(slc_channel *channel, uint64_t now_ns)
{
    channel->step_ns = now_ns;
    if (slc_failed(channel->comm->failure)) return false;
    bool progressed = start_next(channel);
    if (channel->first == channel->taken) return progressed;
    progressed |= !channel->there ? slc_pieces_step(channel) : !channel->sends && take(channel, now_ns);
    progressed |= complete_first(channel, now_ns);
    progressed |= ask_while_full(channel);
    channel->steps += progressed;
    return progressed;
}

uint64_t slc_channel_due(const slc_channel *channel)
{
    uint64_t due = UINT64_MAX;
    for (uint32_t i = channel->first; i != channel->taken; i++) {
        const slc_open_transfer *open = &channel->open[i % SLC_OFFERS];
        /* A transfer past its time waits for something else. */
        if (open->begin_ns > channel->step_ns) due = slc_least(due, open->begin_ns);
        if (open->due_ns > channel->step_ns) due = slc_least(due, open->due_ns);
    }
    return due;
}

bool slc_channel_unfinished(const slc_channel *channel)
{
    return channel->first != atomic_load_explicit(&channel->counts.submitted, memory_order_acquire);
}

void slc_channel_end_waits(slc_channel *channel)
{
    slc_queue_counts_give_up(&channel->counts);
}

uint64_t slc_channel_digest(const slc_channel *channel)
{
    return (uint64_t)channel->taken << 32 | channel->steps;
}

bool slc_channel_waited_for(slc_channel *channel, int *peer, const char **what)
{
    if (!slc_queue_counts_awaited(&channel->counts)) return false;
    *peer = -1;
    *what = channel->desc.name;
    if (channel->first == channel->taken) return true;
    const slc_open_transfer *open = slc_open_transfer_at(channel, channel->first);
    const bool there = channel->there && channel->sends ? was_taken(channel, open) : open->met;
    if (!there) *peer = channel->peer;
    *what = slc_transfer_name(&open->transfer);
    return true;
}
