/* Operations that all ranks called and that no stream finishes, as records with SLUICE_SHIM_DONE tell. One thread. */
#ifndef SLC_BENCH_NCCL_UNFINISHED_H
#define SLC_BENCH_NCCL_UNFINISHED_H

#include "bench/nccl/watch/findings.h"

/* Adds a finding where every rank called the same number of collectives, some have not finished theirs, and nothing has
 * moved for `stall_s`. Errors: MEMORY. */
sluice_status slc_nccl_find_unfinished(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                       double stall_s, slc_nccl_findings *findings);

#endif
