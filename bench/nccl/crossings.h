/* Two communicators that two ranks use in different orders, each in one stream: a sure deadlock, because a stream does
 * one thing after the other. One thread. */
#ifndef SLC_BENCH_NCCL_CROSSINGS_H
#define SLC_BENCH_NCCL_CROSSINGS_H

#include "bench/nccl/findings.h"

/* Adds a finding for the first two collectives that a pair of ranks called in opposite orders. Looks at ranks that have
 * called nothing for a moment alone, since the others are not stuck. Errors: MEMORY. */
sluice_status slc_nccl_find_crossings(const slc_nccl_members *all, slc_nccl_findings *findings);

#endif
