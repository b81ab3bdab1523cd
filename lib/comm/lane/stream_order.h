/* Stream order is the lane's second way of working, for memory of a device that runs ahead of the host: operations are
 * groups of the transport's collectives, and kernels, in the order of the communication stream. Queue, order, gates,
 * counts and hooks are the lane's; but an operation is complete when all of its work is in the stream, of which the
 * transport's library may put its own there later and from a thread of its own. Nothing follows a group, no event and
 * no kernel, before the transport has said that it is launched.
 *
 * Sums are made in rank order, as on the host: each contribution is sent to its part's owner, who adds them up by the
 * reduce kernel; an all-reduce then gathers the parts. If an operation allows any order, the transport's own
 * collectives make the sums. Contributions arrive in the scratch, so a long operation takes several groups, one after
 * the other. A compressed exchange is a group of sends, the servers' kernels (serve.h) and a gather of their results.
 *
 * All of it runs on the communication thread, but for what says otherwise. */
#pragma once

#include "lib/comm/lane/state.h"

/* Takes the oldest active operation as far as it goes without waiting. True if anything was done. */
bool slc_stream_order_step(slc_comm *comm, slc_active_op *active, uint64_t now_ns);

/* Returns the time at which to ask the device again whether it has done something that it does not report by itself;
 * UINT64_MAX: never. */
uint64_t slc_stream_order_due(const slc_comm *comm);

/* Asks the transport now and then whether it is well. If it is not, the control connections have a while to name the
 * rank that is to blame; then the transport's own words fail the world. */
void slc_stream_order_check(slc_comm *comm, uint64_t now_ns);

/* Ends what waits in the stream for other ranks, after the world's failure. */
void slc_stream_order_abort(slc_comm *comm);

/* attach gives the stream to the transport's collectives, detach takes it back, both on the thread that attaches, while
 * no operation is under way. attach waits for the other ranks, and ends early with the world's failure. */
sluice_status slc_stream_order_attach(slc_comm *comm);
void slc_stream_order_detach(slc_comm *comm);
