/* By sorting: rounds and steps are few. */
#include "lib/base/median.h"

#include <math.h>
#include <stdlib.h>

int slc_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double slc_median(double *values, uint64_t count)
{
    if (count == 0) return NAN;
    qsort(values, count, sizeof *values, slc_by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
