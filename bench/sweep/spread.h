/* Repeated runs of a case: their median and how far apart they are. */
#ifndef SLC_BENCH_BENCH_SPREAD_H
#define SLC_BENCH_BENCH_SPREAD_H

#include "bench/sweep/results.h"

typedef struct {
    double median, least, most; /* NaN without a run */
    size_t count;               /* complete runs with such a number */
} slc_bench_spread;

/* Gathers a number over all complete runs that equal `row` under `keys` (which ends with NULL). */
slc_bench_spread slc_bench_spread_of(const json_t *runs, const json_t *row, const char *const *keys,
                                     const char *number);

/* Half the distance between the least and the most, in the number's unit; NaN for fewer than two runs. */
double slc_bench_spread_half(const slc_bench_spread *spread);

/* Is the difference of the medians no larger than both halves together? Without repetitions nobody knows: false. */
bool slc_bench_spread_hides(const slc_bench_spread *a, const slc_bench_spread *b);

#endif
