/* Transfers by messages. A receiver posts receives for the whole transfer, cut in pieces, before it sends a token, and
 * the sender sends nothing before the token is there: so no message of a transport that sends eagerly arrives before
 * its receive, and no transport keeps more than tokens. The token says what the receiver waits for. A tag has 16 bits
 * for the channel, 16 for the transfer, 17 for the piece, 3 for the phase (messages.c has the others) and 12 for the
 * sender. channel_test.c covers this file. */
#include "lib/comm/channel/pieces.h"

#include "lib/base/integer.h"
#include "lib/comm/lane/messages.h"

#include <sluice/status.h>

enum { PHASE_PIECE = 4, PHASE_TOKEN = 5 };
static const uint64_t least_piece = 1 << 20;

static uint64_t make_tag(const slc_channel *channel, const slc_open_transfer *open, uint64_t piece, int phase,
                         int sender)
{
    return (uint64_t)channel->desc.number << 48 | (uint64_t)(open->index & 0xffff) << 32 | piece << 15 |
           (uint64_t)phase << 12 | (uint64_t)sender;
}

static uint64_t piece_bytes(const slc_open_transfer *open)
{
    const uint64_t share = (open->transfer.bytes + SLC_PIECES - 1) / SLC_PIECES;
    return slc_most(share, least_piece);
}

static void fail_message(slc_channel *channel, const slc_open_transfer *open, sluice_status status)
{
    if (status == SLUICE_ERR_PEER)
        slc_messages_suspect(channel->comm, channel->peer, "its messages cannot be delivered");
    else if (status == SLUICE_ERR_MISMATCH)
        slc_failure_set(channel->comm->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT,
                        "channel \"%s\", transfer %u: rank %d sent rank %d more than it waits for: submit the same "
                        "transfers in the same order at both ends",
                        channel->desc.name, open->index, channel->peer, channel->comm->rank);
    else if (status != SLUICE_ERR_INTERRUPTED)
        slc_failure_set(channel->comm->failure, status, SLC_TELL_OWN, "channel \"%s\": message of rank %d: %s",
                        channel->desc.name, channel->peer, sluice_status_name(status));
}

/* Notes that a message is done. `bytes`: that were received. */
static void note_done(slc_channel_message *message, sluice_status status, size_t bytes)
{
    slc_channel *channel = message->channel;
    slc_open_transfer *open = message->transfer;
    const bool received = channel->sends == message->token;
    open->pending--;
    channel->steps++;
    if (status)
        fail_message(channel, open, status);
    else if (received && bytes != message->bytes)
        fail_message(channel, open, SLUICE_ERR_MISMATCH);
    else if (received && message->token)
        open->met = slc_transfer_fits(channel, open, open->token.bytes, open->token.label);
}

static void on_done(void *context, sluice_status status, size_t bytes)
{
    slc_channel_message *message = context;
    message->channel->comm->messages.pending--;
    note_done(message, status, bytes);
}

/* Gives the transport a message: piece number `place`, or a token. */
static void post(slc_channel *channel, slc_open_transfer *open, uint64_t place, bool token, void *data, uint64_t bytes)
{
    slc_comm *comm = channel->comm;
    const slc_transport *transport = comm->transport;
    const bool receives = channel->sends == token;
    const int phase = token ? PHASE_TOKEN : PHASE_PIECE;
    const uint64_t tag = make_tag(channel, open, place, phase, receives ? channel->peer : comm->rank);
    slc_channel_message *message = &open->messages[token ? SLC_PIECES : place];
    size_t received = bytes;
    if (slc_failed(comm->failure)) return;
    *message = (slc_channel_message){channel, open, bytes, token};
    open->pending++;
    comm->messages.pending++;
    sluice_status status =
        receives ? transport->table->recv(transport->self, channel->peer, data, bytes, tag, &received, on_done, message)
                 : transport->table->send(transport->self, channel->peer, data, bytes, tag, on_done, message);
    if (status == SLUICE_IN_PROGRESS) return;
    comm->messages.pending--;
    note_done(message, status, received);
}

static void post_pieces(slc_channel *channel, slc_open_transfer *open)
{
    const slc_channel_transfer *transfer = &open->transfer;
    const uint64_t each = piece_bytes(open);
    for (uint64_t at = 0, piece = 0; at < transfer->bytes; at += each, piece++)
        post(channel, open, piece, false, (char *)transfer->data + at, slc_least(each, transfer->bytes - at));
    open->moved = true;
}

void slc_pieces_begin(slc_channel *channel, slc_open_transfer *open)
{
    if (!channel->sends) {
        open->token = (slc_token){open->transfer.bytes, open->transfer.label};
        post_pieces(channel, open);
    }
    post(channel, open, 0, true, &open->token, sizeof open->token);
}

bool slc_pieces_step(slc_channel *channel)
{
    for (uint32_t i = channel->first; channel->sends && i != channel->taken; i++) {
        slc_open_transfer *open = slc_open_transfer_at(channel, i);
        if (open->moved) continue;
        if (!open->met) return false;
        post_pieces(channel, open);
        return true;
    }
    return false;
}
