/* The first collective of a communicator that its ranks called differently. One thread. */
#ifndef SLC_BENCH_NCCL_DIFFERENCES_H
#define SLC_BENCH_NCCL_DIFFERENCES_H

#include "bench/nccl/watch/findings.h"

/* Adds a finding where the entries of two ranks differ, or where the rolling hashes show that they did before the
 * oldest entry kept. Errors: MEMORY. */
sluice_status slc_nccl_find_difference(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                       slc_nccl_findings *findings);

#endif
