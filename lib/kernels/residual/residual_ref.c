/* Sums by their definition. residual_test.c covers this file. */
#include "lib/kernels/residual/residual.h"

#include "lib/kernels/dropout/dropout.h"

static double given(float factor)
{
    return factor != 0 ? (double)factor : 1;
}

static double factor(const slc_dropout *dropout, uint64_t element)
{
    return dropout && dropout->probability > 0 ? slc_dropout_factor_ref(dropout, element) : 1;
}

static double path_factor(const slc_drop_path *path, uint64_t row)
{
    return path ? factor(&path->draw, row / path->rows) : 1;
}

void slc_residual_forward_ref(const slc_residual_forward_args *args)
{
    const double *x = args->x, *bias = args->bias, *scale = args->scale, *residual = args->residual;
    double *out = args->out;
    for (uint64_t i = 0; i < args->rows * args->channels; i++) {
        uint64_t c = i % args->channels;
        double kept = (x[i] + (bias ? bias[c] : 0)) * factor(args->dropout, i);
        const double times = given(args->factor) * path_factor(args->path, i / args->channels);
        out[i] = (residual ? residual[i] : 0) + times * (scale ? scale[c] : 1) * kept;
    }
}

void slc_residual_backward_ref(const slc_residual_backward_args *args)
{
    const double *dout = args->dout, *x = args->x, *bias = args->bias, *scale = args->scale;
    double *dx = args->dx, *dscale = args->dscale;
    for (uint64_t c = 0; scale && args->fresh && c < args->channels; c++) dscale[c] = 0;
    for (uint64_t i = 0; i < args->rows * args->channels; i++) {
        uint64_t c = i % args->channels;
        const double d =
            given(args->factor) * dout[i] * path_factor(args->path, i / args->channels) * factor(args->dropout, i);
        if (scale) dscale[c] += d * (x[i] + (bias ? bias[c] : 0));
        dx[i] = (scale ? scale[c] : 1) * d;
    }
}

void slc_bias_backward_ref(const slc_bias_backward_args *args)
{
    const uint64_t stride = args->stride ? args->stride : args->columns;
    const double *dy = args->dy;
    double *dbias = args->dbias;
    for (uint64_t c = 0; c < args->columns; c++) {
        double sum = 0;
        for (uint64_t r = 0; r < args->rows; r++) sum += dy[r * stride + c];
        dbias[c] = (args->fresh ? 0.0 : dbias[c]) + given(args->factor) * sum;
    }
}
