/* One end of a channel. Calls after slc_channel_go_on need the lock of that call: the communication thread holds it,
 * and slc_channel_go_on does while it steps. Private to lib/comm. */
#pragma once

#include "lib/comm/channel/state.h"

/* Makes an end; its counters in the control page are the caller's to clear. Errors: MEMORY. */
sluice_status slc_channel_init(slc_channel *channel, slc_comm *comm, const slc_channel_desc *desc);
void slc_channel_fini(slc_channel *channel);

/* Does the work of slc_channel_notify, on any thread. The communication thread holds `lock` while it is at the end. */
void slc_channel_go_on(slc_channel *channel, pthread_mutex_t *lock);

/* Takes transfers as far as they go without waiting, with at most one chunk of copying. True if anything was done. */
bool slc_channel_step(slc_channel *channel, uint64_t now_ns);

/* The time at which the next held-back completion is due; UINT64_MAX: there is none. */
uint64_t slc_channel_due(const slc_channel *channel);

/* True if a transfer is submitted and not complete. */
bool slc_channel_unfinished(const slc_channel *channel);

/* Ends every wait for transfers, after a failure. */
void slc_channel_end_waits(slc_channel *channel);

/* A number that changes as transfers go on. */
uint64_t slc_channel_digest(const slc_channel *channel);

/* Returns true if the program waits for a transfer. *what is then the name of the oldest open transfer, and *peer the
 * rank that has yet to come to it, -1 if that rank is there. If no transfer is open, *what is the channel's name and
 * *peer -1. */
bool slc_channel_waited_for(slc_channel *channel, int *peer, const char **what);
