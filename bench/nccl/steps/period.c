/* A run of equal pairs (i, i + p) of length r is r + p numbers that repeat with period p. Each p is tried.
 * steps_test.c covers this file. */
#include "bench/nccl/steps/period.h"

enum { LOOKED_AT = 32768 };

static const double nearly = 0.9; /* a longer period must cover more than a shorter one, by this ratio */

static void note_run(slc_period *period, size_t first, size_t pairs, bool unbroken)
{
    size_t repetitions = pairs / period->length + 1, covered = pairs + period->length;
    if (repetitions < SLC_PERIOD_REPETITIONS) return;
    if (!unbroken) period->covered += covered;
    if (unbroken && covered > period->covered) period->covered = covered;
    if (repetitions <= period->repetitions) return;
    period->first = first;
    period->end = first + covered;
    period->repetitions = repetitions;
}

static slc_period runs_of(const uint64_t *numbers, size_t count, size_t length, bool unbroken)
{
    slc_period period = {.length = length};
    size_t first = 0;
    for (size_t i = 0; i + length < count; i++) {
        if (numbers[i] == numbers[i + length]) continue;
        note_run(&period, first, i - first, unbroken);
        first = i + 1;
    }
    note_run(&period, first, count - length - first, unbroken);
    return period;
}

bool slc_period_find(const uint64_t *numbers, size_t count, bool unbroken, slc_period *out)
{
    size_t skipped = count > LOOKED_AT ? count - LOOKED_AT : 0;
    slc_period best = {0};
    numbers += skipped;
    count -= skipped;
    for (size_t length = 1; length * SLC_PERIOD_REPETITIONS <= count; length++) {
        slc_period period = runs_of(numbers, count, length, unbroken);
        if (nearly * (double)period.covered > (double)best.covered) best = period;
        if ((double)best.covered >= nearly * (double)count) break; /* no longer period can cover more by that ratio */
    }
    best.first += skipped;
    best.end += skipped;
    *out = best;
    return best.repetitions > 0;
}
