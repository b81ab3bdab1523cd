/* Sums by definition. */
#include "lib/kernels/residual/residual_ref.h"

void slc_add_ref(uint64_t count, const double *a, const double *b, double *out)
{
    for (uint64_t i = 0; i < count; i++) out[i] = a[i] + b[i];
}

void slc_bias_backward_ref(uint64_t rows, uint64_t columns, const double *dy, double *dbias, int fresh)
{
    for (uint64_t c = 0; c < columns; c++) {
        double sum = fresh ? 0.0 : dbias[c];
        for (uint64_t r = 0; r < rows; r++) sum += dy[r * columns + c];
        dbias[c] = sum;
    }
}
