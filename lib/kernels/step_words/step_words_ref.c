/* Bins by norm_ref.c's definition; a norm by adding up what each bin counts: bin j counts units of 2^(12 j - 298).
 * step_words_test.c covers this file. */
#include "lib/kernels/step_words/step_words.h"

#include <math.h>

void slc_step_words_inspect_ref(uint64_t count, const float *x, bool norm, uint32_t parameter, slc_step_words *words)
{
    if (norm) slc_norm_add_ref(count, x, words->bins);
    if (slc_all_finite_ref(count, x)) return;
    words->non_finite++;
    if (parameter < words->first_bad) words->first_bad = parameter;
}

long double slc_step_words_norm_ref(const int64_t *bins)
{
    long double sum = 0;
    for (int j = SLC_NORM_BINS - 2; j >= 0; j--) sum += ldexpl((long double)bins[j], 12 * j - 298);
    return bins[SLC_NORM_BINS - 1] ? (long double)INFINITY : sqrtl(sum);
}
