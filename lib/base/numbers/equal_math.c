/* Sums and products in long double, which every processor rounds alike; libm's functions of long double would be no
 * better, because x87's own logarithms and exponentials differ between makers. */
#include "lib/base/numbers/equal_math.h"

#include <math.h>
#include <stdbool.h>

double slc_power(double base, uint64_t exponent)
{
    long double result = 1, square = base;
    for (uint64_t left = exponent; left; left >>= 1, square *= square)
        if (left & 1) result *= square;
    return (double)result;
}

/* e^x = 2^n e^r with |r| <= ln 2 / 2, where the 20th term of Taylor's series is below 2^-80. */
double slc_exponential(double x)
{
    static const long double ln2 = 0.69314718055994530941723212145817657L;
    if (x < -800) return 0;
    const int n = (int)(x / ln2 - 0.5L);
    const long double r = x - n * ln2;
    long double sum = 1;
    for (int term = 20; term > 0; term--) sum = 1 + r / term * sum;
    return (double)ldexpl(sum, n);
}

enum { TERMS = 12 }; /* of Taylor's series up to pi/4, where the next one is below 2^-80 */

/* 1 - x^2/(first (first+1)) (1 - x^2/((first+2) (first+3)) (...)), from the inside out: cos x for 1, sin x / x for 2.
 */
static long double series(long double x, int first)
{
    long double sum = 1;
    for (int n = first + 2 * (TERMS - 1); n >= first; n -= 2) sum = 1 - x * x / ((long double)n * (n + 1)) * sum;
    return sum;
}

double slc_cosine(double x)
{
    static const long double pi = 3.14159265358979323846264338327950288L;
    const bool second = x > 1.5707963267948966;
    const long double y = second ? pi - x : x;
    const long double rest = pi / 2 - y, size = y <= pi / 4 ? series(y, 1) : rest * series(rest, 2);
    return (double)(second ? -size : size);
}

/* Newton's method, begun at 1, falls towards the root and never passes it but for rounding. So the value from which it
 * falls no further is the root. */
double slc_root(double x, uint32_t degree)
{
    if (degree <= 1 || x <= 0) return x;
    for (long double root = 1;;) {
        long double power = 1; /* root^(degree - 1) */
        for (uint32_t i = 1; i < degree; i++) power *= root;
        const long double next = root - (root - (long double)x / power) / degree;
        if (!(next < root)) return (double)root;
        root = next;
    }
}
