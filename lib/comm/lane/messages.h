/* The messages of active operations to and from the ranks that are not reached through memory. */
#pragma once

#include "lib/comm/lane/state.h"

/* A message that the transport has begun and not ended. */
typedef struct {
    int peer;                  /* to which it goes or from which it comes */
    uint32_t operation, place; /* of which communicating operation; of two in one the earlier one has the lower place */
    uint64_t bytes;
} slc_open_message;

sluice_status slc_messages_init(slc_comm *comm);
/* True if another block keeps the link busy when one ends. */
bool slc_messages_plenty(const slc_comm *comm);
/* The message on its way that comes first in the order in which operations need them. False: there is none. */
bool slc_messages_oldest(const slc_comm *comm, slc_open_message *out);
/* Posts the sends and receives that may be posted. True if there were any. */
bool slc_messages_step(slc_comm *comm);
/* Notes that this rank's part of a block has its sum: its scratch is free, and the result goes to who needs it. */
void slc_messages_reduced(slc_comm *comm, slc_active_op *active, uint64_t block);
/* True if all contributions of a block are here. */
bool slc_messages_arrived(slc_comm *comm, slc_active_op *active, uint64_t block);
/* True if the messages of all blocks are done. */
bool slc_messages_finished(const slc_comm *comm, const slc_active_op *active);
/* Notes that a peer cannot be reached, which the control connection may explain. Keeps the first one. Any thread. */
void slc_messages_suspect(slc_comm *comm, int rank, const char *why);
