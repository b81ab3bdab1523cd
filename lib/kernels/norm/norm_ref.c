/* The bins by definition: each grain's sum is taken apart with frexp and ldexp, without looking at its bits.
 * norm_test.c covers this file. */
#include "lib/kernels/norm/norm.h"

#include <math.h>

long double slc_norm_sum_ref(uint64_t count, const float *x)
{
    long double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += (long double)x[i] * (long double)x[i];
    return sum;
}

static void add_grain(int64_t *bins, double grain)
{
    if (!isfinite(grain)) {
        bins[SLC_NORM_BINS - 1]++;
        return;
    }
    if (grain == 0) return;
    int exponent;
    frexp(grain, &exponent);
    int place = exponent - 53 + 298 < 0 ? 0 : exponent - 53 + 298; /* place of the lowest of 53 bits, from 2^-298 */
    int bin = place / 12;
    double unit = ldexp(1.0, 12 * bin - 298), rest = grain / unit; /* exact: a power of two */
    for (int piece = 2; piece >= 0; piece--) {
        double whole = floor(ldexp(rest, -24 * piece));
        bins[bin + 2 * piece] += (int64_t)whole;
        rest -= ldexp(whole, 24 * piece);
    }
}

void slc_norm_add_ref(uint64_t count, const float *x, int64_t *bins)
{
    for (uint64_t at = 0; at < count; at += 16) {
        double v[16];
        for (uint64_t i = 0; i < 16; i++) v[i] = at + i < count ? (double)x[at + i] * (double)x[at + i] : 0.0;
        for (int half = 8; half > 0; half /= 2)
            for (int i = 0; i < half; i++) v[i] += v[i + half];
        add_grain(bins, v[0]);
    }
}

bool slc_all_finite_ref(uint64_t count, const float *x)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}
