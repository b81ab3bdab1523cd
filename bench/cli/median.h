/* The middle of measured values. */
#ifndef SLC_BENCH_MEDIAN_H
#define SLC_BENCH_MEDIAN_H

#include <stdint.h>

/* Sorts them in place. The mean of the two in the middle where there is no single one; NaN of none. */
double slc_median(double *values, uint64_t count);

#endif
