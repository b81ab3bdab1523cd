/* Groups, and communicators that become known at their end. Private to plugins/nccl_shim. */
#ifndef SLC_NCCL_SHIM_GROUPS_H
#define SLC_NCCL_SHIM_GROUPS_H

#include "plugins/nccl_shim/call.h"

/* Takes a communicator whose making call returned `result`: at once, or, in a group, at its outermost end. */
void slc_comm_made(slc_recorder *recorder, slc_shim_thread *thread, slc_shim_comm *made, ncclResult_t result);

/* Notes that a communicator can be used: asks it what its row does not know yet. */
void slc_comm_ready(slc_shim_comm *made);

#endif
