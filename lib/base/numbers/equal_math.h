/* Functions that give the same bits on every x86-64 processor. Those of libm do not: glibc computes pow, cos and others
 * in one way if there are fused multiply-adds and in another if there are none, and their last bits differ. A
 * number that each rank computes for itself and that all of them need alike comes from here, or from + - * / and sqrt.
 */
#pragma once

#include <stdint.h>

/* base^exponent, by squaring. |result - base^exponent| <= base^exponent (exponent 2^-63 + 2^-53) for 0 <= base <= 1. */
double slc_power(double base, uint64_t exponent);

/* e^x for x <= 0. |result - e^x| <= e^x (2^-53 + |x| 2^-63) + 2^-1074. */
double slc_exponential(double x);

/* cos x for 0 <= x <= 3.141592653589793; at most 0.51 units in the last place from it, and 2^-63 next to its zero. */
double slc_cosine(double x);

/* x^(1 / degree) for 0 <= x <= 1 and degree >= 1; at most 0.51 units in the last place from it. */
double slc_root(double x, uint32_t degree);
