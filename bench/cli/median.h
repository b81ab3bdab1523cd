/* The median of measured values. Any thread. */
#ifndef SLC_BENCH_MEDIAN_H
#define SLC_BENCH_MEDIAN_H

#include <stdint.h>

void slc_sort(double *values, uint64_t count); /* in place, the smallest first; no NaN */

/* Sorts the values. Returns the middle one, or the mean of the two in the middle; NaN: there are none. */
double slc_median(double *values, uint64_t count);

#endif
