/* Groups, and communicators that become known at their end. Private to plugins/nccl/shim. */
#pragma once

#include "plugins/nccl/shim/call.h"

/* Takes communicators (a list by `next`) whose making call returned `result`: at once, or, in a group, at its outermost
 * end. */
void slc_shim_comms_made(slc_shim_recorder *recorder, slc_shim_thread *thread, slc_shim_comm *first,
                         ncclResult_t result);

/* Writes down that ncclCommGetAsyncError has answered `state` for this communicator. If that is an end, its children
 * that have got their handles meanwhile are asked for their states too. */
void slc_shim_comms_asked(slc_shim_recorder *recorder, slc_shim_comm *known, ncclResult_t state);
