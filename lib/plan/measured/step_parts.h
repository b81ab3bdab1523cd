/* A step's time in parts: the last steps that were measured, a usual one of them, and how a prediction missed it. */
#pragma once

#include <sluice/plan.h>
#include <stdint.h>

enum { SLC_STEPS_KEPT = 32 };

/* The last steps, in a ring. */
typedef struct {
    sluice_step_parts steps[SLC_STEPS_KEPT];
    uint64_t count; /* ever added */
} slc_kept_steps;

void slc_kept_steps_add(slc_kept_steps *kept, const sluice_step_parts *step);
/* The mean of the middle third of the kept steps by their length, which is nearly the median, but its parts add up. All
 * 0: none is kept. */
sluice_step_parts slc_kept_steps_usual(const slc_kept_steps *kept);
/* The mean of all kept steps, for those that differ because they draw their layers. All 0: none is kept. */
sluice_step_parts slc_kept_steps_mean(const slc_kept_steps *kept);
/* The median length of the last `count` steps, at most SLC_STEPS_KEPT; 0: so many are not kept. */
double slc_kept_steps_median_s(const slc_kept_steps *kept, uint64_t count);

/* Divides measured->step_s - predicted->step_s: the parts of the result add up to it. Waiting that is longer or shorter
 * than predicted is put down to transfers as far as these took longer, or less long, than predicted. */
sluice_step_miss slc_step_miss_of(const sluice_step_parts *predicted, const sluice_step_parts *measured);
