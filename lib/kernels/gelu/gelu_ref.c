/* Hendrycks & Gimpel, arXiv 1606.08415, section 2. (1 + tanh u) / 2 is written as 1 / (1 + e^-2u) and (1 + erf z) / 2
 * as erfc(-z) / 2: they are equal, but have no cancellation if x is very negative. gelu_test.c covers this file. */
#include "lib/kernels/gelu/gelu.h"

#include <math.h>

static const double cubic = 0.044715;

static double logistic(double u2)
{
    return 1 / (1 + exp(-u2));
}

void slc_gelu_forward_ref(slc_gelu_kind kind, uint64_t count, const double *x, double *y)
{
    const double root = sqrt(2 / M_PI);
    for (uint64_t i = 0; i < count; i++)
        y[i] = kind == SLC_GELU_ERF ? x[i] * erfc(-x[i] / sqrt(2)) / 2
                                    : x[i] * logistic(2 * root * (x[i] + cubic * x[i] * x[i] * x[i]));
}

void slc_gelu_backward_ref(slc_gelu_kind kind, uint64_t count, const double *x, const double *dy, double *dx)
{
    const double root = sqrt(2 / M_PI);
    for (uint64_t i = 0; i < count; i++) {
        double u = root * (x[i] + cubic * x[i] * x[i] * x[i]), slope = root * (1 + 3 * cubic * x[i] * x[i]);
        double density = exp(-x[i] * x[i] / 2) / sqrt(2 * M_PI);
        dx[i] =
            dy[i] * (kind == SLC_GELU_ERF ? erfc(-x[i] / sqrt(2)) / 2 + x[i] * density
                                          : logistic(2 * u) + x[i] * logistic(2 * u) * logistic(-2 * u) * 2 * slope);
    }
}

void slc_tanh_forward_ref(uint64_t count, const double *x, double *y)
{
    for (uint64_t i = 0; i < count; i++) y[i] = tanh(x[i]);
}

void slc_tanh_backward_ref(uint64_t count, const double *y, const double *dy, double *dx)
{
    for (uint64_t i = 0; i < count; i++) dx[i] = dy[i] * (1 - y[i] * y[i]);
}
