/* Bounds how long the compute between operations took. An operation begins when its data is ready, unless its stream
 * was busy until then: in that case the data may have been ready earlier, since the last event that it must have
 * followed. */
#pragma once

#include "bench/nccl/profile/step_units.h"

/* The truth lies between these. Medians over steps. */
typedef struct {
    double low_s, high_s;
} slc_time_bounds;

typedef struct {
    /* [units] The time from the moment when the backward of a unit could begin (the one before it was done, its values
     * were gathered) to its reduction. The first unit's backward begins where the forward ends, which cannot be seen;
     * it has an upper bound alone. */
    slc_time_bounds *backward;
    slc_time_bounds together; /* of all backwards but the first: their bounds may be far below the bounds' sum */
    /* The time from the end of a step's last reduction to the beginning of the next step's first one: the optimizer,
     * the whole forward, the first unit's backward. The upper bound leaves the first gather out, the lower bound all
     * gathers. */
    slc_time_bounds forward;
    double step_s;
    size_t steps; /* with times, of the rank that has fewest */
} slc_compute_times;

/* Each time is that of the slowest rank. The caller calls slc_compute_times_free. Errors: ARGUMENT (fewer than three
 * steps have all their times), MEMORY. */
sluice_status slc_compute_times_measure(const slc_job_steps *steps, const slc_step_units *units,
                                        slc_compute_times *out);
void slc_compute_times_free(slc_compute_times *times);

/* Returns true if the bounds are so far apart that the upper one says little. */
static inline bool slc_is_loose(slc_time_bounds bounds)
{
    return bounds.low_s < 0.9 * bounds.high_s;
}
