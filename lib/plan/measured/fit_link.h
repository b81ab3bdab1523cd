/* Works out the figures of lib/plan/times.h from measured operations. Pure functions: no clock, no communication. */
#pragma once

#include "lib/plan/times.h"

#include <stddef.h>

/* One operation of `bytes` (full buffer) took `seconds` > 0, without the time of starting and ending it. */
typedef struct {
    uint64_t bytes;
    double seconds;
    double weight; /* how much it counts, as the time that was measured; 0: as 1 */
} slc_link_sample;

/* Seconds of one operation in a train that goes steadily: the median pace of the second half of its completions, so
 * that a burst that passed faster at the begin does not count. If completions come in lumps, because a link sends in
 * bursts or another program has the core, that pace is only the pace inside a lump; so the result is at least the mean
 * of the whole train. `at_s` holds the times of the begin and of each completion, `count` >= 2 of them, and is
 * overwritten. */
double slc_fit_steady(double *at_s, size_t count);

/* Fits the line t = latency (N-1) + V (N-1) / (N bandwidth), N > 1, with the least sum of squared relative errors, so
 * that a short operation counts as much as a long one that was measured for as long. Latency is never negative,
 * bandwidth is finite. `count` >= 1. */
slc_link_line slc_fit_line(uint32_t world, const slc_link_sample *samples, size_t count);

/* The smallest run that reaches `share` (0.95) of a line's bandwidth when each operation takes `operation_s` more. */
uint64_t slc_fit_run_bytes(uint32_t world, const slc_link_line *line, double operation_s, double share);

/* A communication alone, and again while compute went on all the time. */
typedef struct {
    double link_alone_s, link_beside_s;
    double compute_alone_s; /* the same compute without communication */
} slc_overlap_sample;

/* *sigma >= 1; *kappa in [0, *sigma]. */
void slc_fit_overlap(const slc_overlap_sample *sample, double *kappa, double *sigma);

/* The median, 0 without values. Reorders them. */
double slc_fit_median(double *values, size_t count);
