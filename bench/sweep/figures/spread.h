/* Repeated runs of a case: their median and how far apart they are. */
#pragma once

#include "bench/sweep/results.h"

typedef struct {
    double median, least, most; /* NaN without a run */
    size_t count;               /* complete runs with such a number */
} slc_bench_spread;

/* Gathers a number over all complete runs that equal `row` under `keys` (which ends with NULL). */
slc_bench_spread slc_bench_spread_of(const json_t *runs, const json_t *row, const char *const *keys,
                                     const char *number);

/* Returns how many different plans the complete runs of the cell of `row` kept; 0: not known. */
size_t slc_bench_count_plans(const json_t *runs, const json_t *row);

/* Returns true if `a` and `b` are runs of equal plans, equal in everything that no plan decides. */
bool slc_bench_same_plan(const json_t *a, const json_t *b);

/* Gathers a number for the cell of `row`. Cells whose runs all kept one and the same plan are measured together: each
 * of these cells has the figure of all their runs. */
slc_bench_spread slc_bench_figure(const json_t *runs, const json_t *row, const char *number);

/* Puts the step time of the runs that equal `row` under `keys` into a line of a picture's table, each number after a
 * space, in ms: the median, the prediction's median, the least and the most; "?": not known. */
void slc_bench_put_step(FILE *file, const json_t *runs, const json_t *row, const char *const *keys);

/* Half the distance between the least and the most, in the number's unit; NaN for fewer than two runs. */
double slc_bench_spread_half(const slc_bench_spread *spread);

/* Returns true if both have been repeated, and the intervals from their least to their most do not touch. Only then one
 * is faster. */
bool slc_bench_spreads_apart(const slc_bench_spread *a, const slc_bench_spread *b);
