/* The lane: the queue of operations and the few that are active at a time, in order. An operation starts when its gates
 * have passed and no earlier operation still works on bytes that it touches; operations complete in order. Submission
 * apart, everything here runs on the communication thread. */
#pragma once

#include "lib/comm/lane/state.h"

sluice_status slc_lane_init(slc_comm *comm, int rank, int size, slc_failure *failure, slc_neighbours *neighbours,
                            slc_transport *transport, slc_history *history);
void slc_lane_fini(slc_comm *comm);

/* Takes the operations as far as they go without waiting and with at most one chunk of copying or adding. True if
 * anything was done. */
bool slc_lane_step(slc_comm *comm, uint64_t now_ns);

/* Adds a value to a digest, which begins as 1 and changes with every value and their order. */
static inline uint64_t slc_digest_add(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * 0x9e3779b97f4a7c15u;
}

/* A number that changes as operations go on. */
uint64_t slc_lane_digest(const slc_comm *comm);

/* The time at which the next held-back completion is due; UINT64_MAX: there is none. */
uint64_t slc_lane_due(const slc_comm *comm);

/* Heartbeats tell what these three return. slc_lane_halted: true if no further operation begins before the program
 * acts. */
bool slc_lane_halted(const slc_comm *comm);
/* The number of communicating operations among the first `index`. */
uint32_t slc_lane_needed(const slc_comm *comm, uint32_t index);
/* The name of the oldest operation that is not complete; NULL: it has no name, or there is none. */
const char *slc_lane_next_name(const slc_comm *comm);
