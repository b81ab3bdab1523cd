/* From measured operations to the figures of lib/plan/times.h. Pure: no clock, no communication. */
#ifndef SLC_FIT_LINK_H
#define SLC_FIT_LINK_H

#include "lib/plan/times.h"

#include <stddef.h>

/* One operation of `bytes` (full buffer) took `seconds` > 0, what starting and ending it takes left out. */
typedef struct {
    uint64_t bytes;
    double seconds;
} slc_link_sample;

/* The line t = latency (N-1) + V (N-1) / (N bandwidth), N > 1, that leaves the least sum of squared relative errors:
 * so a short operation counts as much as a long one. Latency is never negative, bandwidth finite. `count` >= 1. */
slc_link_line slc_fit_line(uint32_t world, const slc_link_sample *samples, size_t count);

/* The smallest run that reaches `share` (0.95) of a line's bandwidth when `operation_s` comes with each operation. */
uint64_t slc_fit_run_bytes(uint32_t world, const slc_link_line *line, double operation_s, double share);

/* The same communication alone and beside compute that went on all the while. */
typedef struct {
    double link_alone_s, link_beside_s;
    double compute_alone_s; /* what the compute done beside it takes alone */
} slc_overlap_sample;

/* kappa and sigma: sigma >= 1, kappa in [0, sigma]. */
void slc_fit_overlap(const slc_overlap_sample *sample, double *kappa, double *sigma);

/* The median; reorders `values`. 0 for none. */
double slc_fit_median(double *values, size_t count);

#endif
