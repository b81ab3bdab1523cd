/* Transfers from one rank to another, beside the collectives (comm.h).
 *
 * A channel is one direction between two ranks for one purpose, as the activation that crosses one cut of a pipeline.
 * Each end submits its transfers; transfer i of one end meets transfer i of the other. They start and complete in this
 * order, and each end has a gate of its own that counts those that are complete, so that one that waits holds nothing
 * else up: neither other channels nor collectives. Up to SLC_OFFERS transfers of an end are open at a time.
 *
 * Between ranks of one host the receiver's communication thread copies from the sender's memory to its own; the sender
 * names the place, so their arenas may differ. Other ranks send messages: the receiver first says that it waits, so no
 * data arrives before there is a place for it, and a transfer whose receiver is there beforehand takes one latency. A
 * throttled transport counts the bytes on both paths.
 *
 * A transfer may wait for counts of gates before it starts, and unlike operations of a lane it looks at no other one's
 * bytes: the counts must see to it that nobody else writes a sender's bytes, or touches a receiver's, before the
 * transfer is complete. */
#pragma once

#include "lib/comm/comm.h"

typedef struct slc_channel slc_channel;

typedef struct {
    int from, to;     /* ranks of the world, of which this rank is one */
    uint32_t number;  /* below SLC_CHANNELS_MOST (neighbours.h); the same at both ends. A rank has at most one end open
                         of each number */
    const char *name; /* in messages: "h.3 to h.4"; kept by pointer */
} slc_channel_desc;

typedef struct {
    void *data;     /* in the attached arena: the sender's is read, the receiver's written */
    uint64_t bytes; /* at least 1; the same at both ends */
    uint64_t label; /* what this is, as the number of a micro-batch: ends that differ fail the world (MISMATCH) */
    const slc_gate_count *counts; /* to be reached before it starts; kept by pointer until then */
    uint32_t count_count;
    /* The hooks run one at a time: on the communication thread or, if this transfer or another one of the channel has
     * end_may_wait, on a thread that calls slc_channel_notify; NULL: none. An error that one returns fails the world.
     * They open and close neither channels nor groups. */
    sluice_status (*start)(void *context); /* runs when the counts have been reached */
    sluice_status (*end)(void *context);   /* runs at completion, in order, before the transfer is counted */
    void *context;
    const char *what; /* its name in messages; kept by pointer; NULL: "transfer" */
    /* True if only callers of slc_channel_wait need the end of this send. Waking this rank for the end costs more than
     * the transfer does, so between ranks of one host the end is noticed when this rank is next awake, or when somebody
     * waits for it. */
    bool end_may_wait;
} slc_channel_transfer;

/* Opens this rank's ends of `count` channels; channels[i] becomes that of descs[i]. Collective and blocking: every rank
 * of the world calls it, those without a channel with count 0, and every channel has both of its ends in one call.
 * Errors, on every rank: ARGUMENT (a number that is too large or in use, ranks that do not fit), MISMATCH (an end
 * without its other end), UNSUPPORTED (the ends need messages and the transport has none; memory of a GPU), MEMORY, and
 * the world's failure. */
sluice_status slc_channels_open(slc_comm *comm, const slc_channel_desc *descs, uint32_t count, slc_channel **channels);

/* Waits until all transfers are complete, or the world has failed, and frees the ends; NULL entries are allowed. To be
 * called before the world is destroyed. */
void slc_channels_close(slc_channel **channels, uint32_t count);

/* Queues `count` transfers in order and returns at once (it waits only while the queue, of at least 1024, is full).
 * *index, if not NULL, becomes the number of the first one, which is complete when slc_channel_completed has reached
 * *index + 1. Called from one thread at a time. Errors: ARGUMENT, ORDER (nothing is attached), and the world's failure.
 */
sluice_status slc_channel_submit(slc_channel *channel, const slc_channel_transfer *transfers, uint32_t count,
                                 uint32_t *index);

/* Lets this end go on after a count that a transfer waits for has been raised. A send through memory is offered at
 * once, by the calling thread, if its end may wait; else the communication thread is woken, but not for a receive for
 * which nothing is offered yet: its sender does that. */
void slc_channel_notify(slc_channel *channel);

/* Counts completed transfers. A failure of the world raises it far beyond every transfer. */
slc_gate *slc_channel_completed(slc_channel *channel);

/* Returns true if nobody needs to do anything more for the first `count` transfers: they are complete, or, sent through
 * memory, the receiver has taken them and this end has not noticed it yet (end_may_wait). Any thread. */
bool slc_channel_arrived(slc_channel *channel, uint32_t count);

/* Waits until transfer number index - 1 is complete or the world has failed. Returns SLUICE_OK if the transfer is
 * complete, even when the world has failed since; else the failure. */
sluice_status slc_channel_wait(slc_channel *channel, uint32_t index);

/* Says that the world's ranks are `stages` stages of a pipeline, each of the same number of consecutive ranks: lines
 * about ranks that fail name their stages from then on. 0, as at first: there is no pipeline. Local, any thread. */
void slc_comm_name_stages(slc_comm *comm, uint32_t stages);

/* Returns the bytes of the transfers that are complete at this end. A send through shared memory counts when it begins.
 */
uint64_t slc_channel_bytes(const slc_channel *channel);
