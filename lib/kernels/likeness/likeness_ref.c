/* Both figures are computed by their definition. likeness_test.c covers this file. */
#include "lib/kernels/likeness/likeness.h"

#include <math.h>

void slc_likeness_ref(const slc_likeness_args *args)
{
    const double *x = args->x, *y = args->y;
    double *out = args->out;
    for (uint64_t row = 0; row < args->rows; row++) {
        double xx = 0, yy = 0, xy = 0;
        for (uint64_t i = row * args->channels; i < (row + 1) * args->channels; i++)
            xx += x[i] * x[i], yy += y[i] * y[i], xy += x[i] * y[i];
        out[2 * row] = xx > 0 ? sqrt(yy) / sqrt(xx) : 0;
        out[2 * row + 1] = xx > 0 && yy > 0 ? xy / (sqrt(xx) * sqrt(yy)) : 0;
    }
}
