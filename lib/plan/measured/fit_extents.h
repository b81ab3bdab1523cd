/* Times of slots as functions of how long sequences are, fitted to those that were measured at some lengths. Pure
 * functions: no clock, no communication. */
#pragma once

#include "lib/plan/times.h"

#include <stddef.h>

/* Times of the slots of one micro-batch, whose sequences are `extent` of the longest. */
typedef struct {
    double extent; /* in (0, 1] */
    const slc_times *times;
} slc_extent_sample;

/* Fits a + b s + c s^2, none of a, b and c below 0, to seconds[i] at extents[i], with the least sum of squared relative
 * errors, and returns its value at `wanted`. Compute that goes once over each row gives b, attention gives c, and what
 * a slot costs whatever its rows gives a. Two different extents give a line, or b s + c s^2 where a line would begin
 * below 0; one gives b s. Times of 0 were not measured and are left out; the result is 0 without others. */
double slc_fit_extent(const double *extents, const double *seconds, size_t count, double wanted);

/* Sets out->slot_s and out->recompute_s to what slots take at the extent, each fitted by itself; a time that no sample
 * has stays. If `pieces` micro-batches run as one, the terms b s and c s^2 count `pieces` times, and a once. `count` is
 * at most SLC_EXTENTS_MOST. */
enum { SLC_EXTENTS_MOST = 16 };
void slc_fit_extents(const slc_job *job, const slc_extent_sample *samples, size_t count, double extent, uint32_t pieces,
                     slc_times *out);
