/* Within a run the steps that count are alike, so a median far above the fastest of them is not the plan's doing:
 * something else used the cores. */
#pragma once

#include <stdbool.h>

/* `median_s` and `least_s` are of a run's step times; NaN: it had too few. */
static inline bool slc_bench_is_disturbed(double median_s, double least_s)
{
    static const double BUSY = 1.5;
    return least_s > 0 && median_s >= BUSY * least_s;
}
