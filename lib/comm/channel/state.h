/* The state of one end of a channel. The thread that submits writes the queue's end; the rest belongs to
 * whoever holds the lock of the lines, except where a member says otherwise. Private to lib/comm. */
#pragma once

#include "lib/comm/channels.h"
#include "lib/comm/lane/state.h"

enum { SLC_TRANSFERS = 1024, SLC_PIECES = 16 };

/* A token tells the sender that the receiver waits, and for what. */
typedef struct {
    uint64_t bytes, label;
} slc_token;

typedef struct slc_open_transfer slc_open_transfer;

/* A message that belongs to an open transfer: a piece of its data, or its token. */
typedef struct {
    slc_channel *channel;
    slc_open_transfer *transfer;
    uint64_t bytes;
    bool token;
} slc_channel_message;

/* A transfer that has started and is not complete. */
struct slc_open_transfer {
    slc_channel_transfer transfer;
    uint32_t index;
    bool met;          /* the other end is at it too */
    bool moved;        /* direct: this end no longer touches the data; messages: all are posted */
    uint64_t begin_ns; /* direct, received: an imitated network carries nothing before */
    uint64_t due_ns;   /* it does not complete before */
    bool charged;
    bool late;  /* direct, received: the sender was there first, and a message would have had to tell it to begin */
    bool rings; /* direct, received: the sender's thread is to be woken when this is taken */
    const char *source; /* direct, received: where the data lies, */
    uint64_t copied;    /* and how many bytes of it are here */
    slc_token token;    /* of the receiver */
    uint32_t pending;   /* messages that the transport holds */
    slc_channel_message messages[SLC_PIECES + 1];
};

struct slc_channel {
    slc_comm *comm; /* the world's */
    slc_channel_desc desc;
    bool sends;
    int peer;                       /* the rank of the other end */
    slc_channel_words *own;         /* words of this end, */
    const slc_channel_words *there; /* and of the other one; NULL: the ends send messages */
    slc_channel *next;              /* of this world */

    slc_channel_transfer *queue; /* ring */
    slc_queue_counts counts;     /* of transfers */
    _Atomic uint64_t bytes;

    uint32_t taken, first; /* transfers begun; the oldest open one */
    bool full;             /* direct, sent: as many are open as may be, and the sender's thread has asked for a ring */
    uint32_t steps;        /* changes with all that is done */
    uint64_t step_ns;
    slc_open_transfer open[SLC_OFFERS]; /* transfer i at i modulo this */
};

static inline slc_open_transfer *slc_open_transfer_at(slc_channel *channel, uint32_t index)
{
    return &channel->open[index % SLC_OFFERS];
}

static inline const char *slc_transfer_name(const slc_channel_transfer *transfer)
{
    return transfer->what ? transfer->what : "transfer";
}

/* Checks what the other end has against this end's transfer. MISMATCH fails the world. */
static inline bool slc_transfer_fits(slc_channel *channel, const slc_open_transfer *open, uint64_t bytes,
                                     uint64_t label)
{
    const slc_channel_transfer *own = &open->transfer;
    if (own->bytes == bytes && own->label == label) return true;
    slc_failure_set(channel->comm->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT,
                    "channel \"%s\", transfer %u: rank %d has %llu bytes with label %llu, rank %d (\"%s\") %llu bytes "
                    "with label %llu: submit the same transfers in the same order at both ends",
                    channel->desc.name, open->index, channel->peer, (unsigned long long)bytes,
                    (unsigned long long)label, channel->comm->rank, slc_transfer_name(own),
                    (unsigned long long)own->bytes, (unsigned long long)own->label);
    return false;
}
