/* The messages of a channel whose ends do not share memory. Private to lib/comm. */
#pragma once

#include "lib/comm/channel/state.h"

/* Begins a transfer: the receiver posts receives for all of its data and says so, the sender waits for that. */
void slc_pieces_begin(slc_channel *channel, slc_open_transfer *open);

/* Sends the data once the receiver is there, in the order of transfers. True if it did. */
bool slc_pieces_step(slc_channel *channel);
