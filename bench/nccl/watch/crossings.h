/* Two communicators that two ranks use in different orders. In one stream each that is a sure deadlock, because a
 * stream does one thing after the other; in several streams it may be one. One thread. */
#ifndef SLC_BENCH_NCCL_CROSSINGS_H
#define SLC_BENCH_NCCL_CROSSINGS_H

#include "bench/nccl/watch/findings.h"

/* Adds a finding for the first two collectives that a pair of ranks called in opposite orders, in one stream each or,
 * with `any_stream`, in whichever. Looks at ranks that have called nothing for a moment alone, since the others are not
 * stuck. Errors: MEMORY. */
sluice_status slc_nccl_find_crossings(const slc_nccl_members *all, bool any_stream, slc_nccl_findings *findings);

#endif
