/* Values are sorted, because rounds and steps are few. lib/plan/measured/fit_link_test.c covers this file. */
#include "lib/base/numbers/median.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void slc_sort(double *values, uint64_t count)
{
    qsort(values, count, sizeof *values, by_value);
}

double slc_median(double *values, uint64_t count)
{
    if (count == 0) return NAN;
    slc_sort(values, count);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
