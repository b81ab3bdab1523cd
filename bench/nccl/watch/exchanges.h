/* Sends and receives: the nth send of a rank to another one belongs to the nth receive there. One thread. */
#ifndef SLC_BENCH_NCCL_EXCHANGES_H
#define SLC_BENCH_NCCL_EXCHANGES_H

#include "bench/nccl/watch/waits.h"

/* Adds a finding for the earliest send whose receive has another size, and a wait for each pair of ranks where one end
 * was called more often than the other. Errors: MEMORY. */
sluice_status slc_nccl_match_exchanges(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                       double stall_s, slc_nccl_findings *findings, slc_nccl_waits *waits);

#endif
