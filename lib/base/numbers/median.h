/* Sorted values and the one in the middle. Any thread. */
#pragma once

#include <stdint.h>

/* Sorts in place, the smallest first. NaN is not allowed. */
void slc_sort(double *values, uint64_t count);

/* Sorts the values in place and returns the one in the middle, or the mean of the two there; NaN if there is none. */
double slc_median(double *values, uint64_t count);
