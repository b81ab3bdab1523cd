/* Transfers in a ring: each rank sends to the next one and receives from the one before, as nccl-tests' sendrecv does.
 * Collective, except where a comment says otherwise. */
#pragma once

#include "lib/comm/channels.h"

typedef struct {
    slc_comm *comm;
    slc_channel *in, *out; /* from the rank before, to the next one */
    int before;            /* the rank before */
    uint32_t submitted;    /* turns */
} slc_perf_ring;

/* The caller closes the ring before the world. Errors: ARGUMENT (fewer than two ranks), those of slc_channels_open. */
sluice_status slc_perf_ring_open(sluice_world *world, slc_perf_ring *out);
void slc_perf_ring_close(slc_perf_ring *ring); /* local; does nothing to a zeroed one */

/* Submits one turn: `bytes` from `src` here to `dst` at the next rank. `end` runs on the communication thread when the
 * bytes from the rank before are here. It waits only while the queue is full. */
sluice_status slc_perf_ring_turn(slc_perf_ring *ring, const void *src, void *dst, uint64_t bytes,
                                 sluice_status (*end)(void *context), void *context);

/* slc_perf_ring_is_over says whether the first `turns` turns are over at this rank; slc_perf_ring_wait waits for that.
 * Local. */
bool slc_perf_ring_is_over(const slc_perf_ring *ring, uint32_t turns);
sluice_status slc_perf_ring_wait(slc_perf_ring *ring, uint32_t turns);
