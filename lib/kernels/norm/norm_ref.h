/* The plain loops of norm.h: the sum of squares in long double, and the bins one grain at a time. */
#ifndef SLC_KERNEL_NORM_REF_H
#define SLC_KERNEL_NORM_REF_H

#include <stdbool.h>
#include <stdint.h>

long double slc_norm_sum_ref(uint64_t count, const float *x);
void slc_norm_add_ref(uint64_t count, const float *x, int64_t *bins);
bool slc_all_finite_ref(uint64_t count, const float *x);

#endif
