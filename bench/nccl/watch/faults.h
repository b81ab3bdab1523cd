/* The faults that are looked for in the collectives, sends and receives of a communicator, each in a file of its own.
 * Errors: MEMORY. One thread. */
#pragma once

#include "bench/nccl/watch/waits.h"

/* differences.c: adds a finding for the first collective that two ranks called differently. Their entries show it, or,
 * for collectives before the oldest entry kept, their rolling hashes. */
sluice_status slc_nccl_find_difference(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                       slc_nccl_findings *findings);

/* exchanges.c: the nth send of a rank to another one belongs to the nth receive there. Adds a finding for the earliest
 * send whose receive has another size, and a wait for each pair of ranks of which one end was called more often than
 * the other. */
sluice_status slc_nccl_match_exchanges(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                       double stall_s, slc_nccl_findings *findings, slc_nccl_waits *waits);

/* unfinished.c: adds a finding for operations that all ranks called and that no stream finishes, as records with
 * SLUICE_SHIM_DONE tell, if nothing has moved for `stall_s`. */
sluice_status slc_nccl_find_unfinished(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                       double stall_s, slc_nccl_findings *findings);

/* crossings.c: adds a finding for the first two collectives, on two communicators, that a pair of ranks called in
 * opposite orders. Each rank called both in one stream, which is a sure deadlock because a stream does one thing after
 * the other; with `any_stream` in any streams. Looks only at ranks that have called nothing for a moment, since the
 * others are not stuck. */
sluice_status slc_nccl_find_crossings(const slc_nccl_members *all, bool any_stream, slc_nccl_findings *findings);
