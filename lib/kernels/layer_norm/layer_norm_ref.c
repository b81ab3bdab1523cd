/* Ba et al., arXiv 1607.06450, equation 4, and its derivative. layer_norm_test.c covers this file. */
#include "lib/kernels/layer_norm/layer_norm.h"

#include <math.h>

void slc_layer_norm_forward_ref(const slc_layer_norm_forward_args *args)
{
    const uint64_t channels = args->channels;
    const double *x = args->x, *residual = args->residual, *gamma = args->gamma, *beta = args->beta;
    double *sum = args->sum, *y = args->y, *mean = args->mean, *rstd = args->rstd;
    for (uint64_t row = 0; row < args->rows; row++) {
        const uint64_t base = row * channels;
        const double *in = residual ? sum : x;
        if (residual)
            for (uint64_t c = 0; c < channels; c++) sum[base + c] = x[base + c] + residual[base + c];
        double total = 0, squares = 0;
        for (uint64_t c = 0; c < channels; c++) total += in[base + c];
        double m = total / (double)channels;
        for (uint64_t c = 0; c < channels; c++) squares += (in[base + c] - m) * (in[base + c] - m);
        double r = 1 / sqrt(squares / (double)channels + args->epsilon);
        for (uint64_t c = 0; c < channels; c++) y[base + c] = (in[base + c] - m) * r * gamma[c] + beta[c];
        mean[row] = m;
        rstd[row] = r;
    }
}

void slc_layer_norm_backward_ref(const slc_layer_norm_backward_args *args)
{
    const uint64_t channels = args->channels;
    const double *dy = args->dy, *x = args->x, *gamma = args->gamma, *mean = args->mean, *rstd = args->rstd;
    const double *dx_add = args->dx_add;
    double *dx = args->dx, *dgamma = args->dgamma, *dbeta = args->dbeta;
    for (uint64_t c = 0; args->fresh && c < channels; c++) dgamma[c] = dbeta[c] = 0;
    for (uint64_t row = 0; row < args->rows; row++) {
        const uint64_t base = row * channels;
        double plain = 0, hat = 0;
        for (uint64_t c = 0; c < channels; c++) {
            double h = (x[base + c] - mean[row]) * rstd[row];
            plain += dy[base + c] * gamma[c];
            hat += dy[base + c] * gamma[c] * h;
            dgamma[c] += dy[base + c] * h;
            dbeta[c] += dy[base + c];
        }
        plain /= (double)channels;
        hat /= (double)channels;
        for (uint64_t c = 0; c < channels; c++) {
            double h = (x[base + c] - mean[row]) * rstd[row];
            double own = rstd[row] * (dy[base + c] * gamma[c] - plain - h * hat);
            dx[base + c] = own + (dx_add ? dx_add[base + c] : 0);
        }
    }
}
