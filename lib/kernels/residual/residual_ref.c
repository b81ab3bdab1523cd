/* Sums by their definition. */
#include "lib/kernels/residual/residual_ref.h"

#include "lib/kernels/dropout/dropout_ref.h"

static double factor(const slc_dropout *dropout, uint64_t element)
{
    return dropout && dropout->probability > 0 ? slc_dropout_factor_ref(dropout, element) : 1;
}

void slc_residual_forward_ref(uint64_t rows, uint64_t channels, const double *x, const double *bias,
                              const slc_dropout *dropout, const double *scale, const double *residual, double *out)
{
    for (uint64_t i = 0; i < rows * channels; i++) {
        uint64_t c = i % channels;
        double kept = (x[i] + (bias ? bias[c] : 0)) * factor(dropout, i);
        out[i] = (residual ? residual[i] : 0) + (scale ? scale[c] : 1) * kept;
    }
}

void slc_residual_backward_ref(uint64_t rows, uint64_t channels, const double *dout, const double *x,
                               const double *bias, const slc_dropout *dropout, const double *scale, double *dx,
                               double *dscale, int fresh)
{
    for (uint64_t c = 0; scale && fresh && c < channels; c++) dscale[c] = 0;
    for (uint64_t i = 0; i < rows * channels; i++) {
        uint64_t c = i % channels;
        if (scale) dscale[c] += dout[i] * (x[i] + (bias ? bias[c] : 0)) * factor(dropout, i);
        dx[i] = (scale ? scale[c] : 1) * dout[i] * factor(dropout, i);
    }
}

void slc_bias_backward_ref(uint64_t rows, uint64_t columns, const double *dy, uint64_t stride, double *dbias, int fresh)
{
    if (!stride) stride = columns;
    for (uint64_t c = 0; c < columns; c++) {
        double sum = fresh ? 0.0 : dbias[c];
        for (uint64_t r = 0; r < rows; r++) sum += dy[r * stride + c];
        dbias[c] = sum;
    }
}
