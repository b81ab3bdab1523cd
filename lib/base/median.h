/* The middle of measured values. */
#ifndef SLC_BASE_MEDIAN_H
#define SLC_BASE_MEDIAN_H

#include <stdint.h>

/* Compares two doubles, for qsort: ascending. */
int slc_by_value(const void *a, const void *b);

/* Sorts the values in place and returns the one in the middle, or the mean of the two there; NaN if there is none. */
double slc_median(double *values, uint64_t count);

#endif
