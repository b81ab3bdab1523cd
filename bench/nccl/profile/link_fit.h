/* The link's latency and bandwidth, from how long operations took. Pure functions but for the memory. */
#pragma once

#include "bench/nccl/profile/job_steps.h"
#include "lib/plan/times.h"

typedef struct {
    slc_link link;
    size_t sizes;      /* different ones that were seen */
    bool latency_seen; /* the largest size is at least twice the smallest one; else the latency counts as 0 */
} slc_link_figures;

/* Fits the link's figures. An operation's time includes waiting for the slowest rank, so in each step only the time of
 * the rank that came last counts. The operation's time is the median of these, or the least if ranks are missing. An
 * all-reduce counts as a reduce-scatter and an all-gather of half its time each. Errors: ARGUMENT (a world of one rank
 * has no link; no operation has a time), MEMORY. */
sluice_status slc_link_figures_fit(const slc_job_steps *steps, slc_link_figures *out);
