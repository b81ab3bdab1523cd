/* Ba et al., arXiv 1607.06450, equation 4, and its derivative. */
#include "lib/kernels/layer_norm/layer_norm_ref.h"

#include <math.h>
#include <stddef.h>

void slc_layer_norm_forward_ref(uint64_t rows, uint64_t channels, const double *x, const double *residual, double *sum,
                                const double *gamma, const double *beta, double epsilon, double *y, double *mean,
                                double *rstd)
{
    for (uint64_t row = 0; row < rows; row++) {
        const uint64_t base = row * channels;
        const double *in = residual ? sum : x;
        if (residual)
            for (uint64_t c = 0; c < channels; c++) sum[base + c] = x[base + c] + residual[base + c];
        double total = 0, squares = 0;
        for (uint64_t c = 0; c < channels; c++) total += in[base + c];
        double m = total / (double)channels;
        for (uint64_t c = 0; c < channels; c++) squares += (in[base + c] - m) * (in[base + c] - m);
        double r = 1 / sqrt(squares / (double)channels + epsilon);
        for (uint64_t c = 0; c < channels; c++) y[base + c] = (in[base + c] - m) * r * gamma[c] + beta[c];
        mean[row] = m;
        rstd[row] = r;
    }
}

void slc_layer_norm_backward_ref(uint64_t rows, uint64_t channels, const double *dy, const double *x,
                                 const double *gamma, const double *mean, const double *rstd, const double *dx_add,
                                 double *dx_out, double *dgamma, double *dbeta, int fresh)
{
    for (uint64_t c = 0; fresh && c < channels; c++) dgamma[c] = dbeta[c] = 0;
    for (uint64_t row = 0; row < rows; row++) {
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
            double dx = rstd[row] * (dy[base + c] * gamma[c] - plain - h * hat);
            dx_out[base + c] = dx + (dx_add ? dx_add[base + c] : 0);
        }
    }
}
