/* Looks through the runs once for each figure: a sweep has hundreds of them at most. */
#include "bench/sweep/spread.h"

#include <math.h>

slc_bench_spread slc_bench_spread_of(const json_t *runs, const json_t *row, const char *const *keys, const char *number)
{
    slc_bench_spread spread = {slc_bench_median(runs, row, keys, number), NAN, NAN, 0};
    size_t index;
    json_t *run;
    json_array_foreach ((json_t *)runs, index, run) {
        double value = slc_bench_number(run, number);
        if (!slc_bench_complete(run) || isnan(value) || !slc_bench_alike(run, row, keys)) continue;
        spread.least = fmin(spread.least, value);
        spread.most = fmax(spread.most, value);
        spread.count++;
    }
    return spread;
}

double slc_bench_spread_half(const slc_bench_spread *spread)
{
    return spread->count > 1 ? (spread->most - spread->least) / 2 : NAN;
}

bool slc_bench_spread_hides(const slc_bench_spread *a, const slc_bench_spread *b)
{
    return fabs(a->median - b->median) <= slc_bench_spread_half(a) + slc_bench_spread_half(b);
}
