/* Hendrycks & Gimpel, arXiv 1606.08415, section 2, the tanh form. */
#include "lib/kernels/gelu/gelu_ref.h"

#include <math.h>

static const double cubic = 0.044715;

void slc_gelu_forward_ref(uint64_t count, const double *x, double *y)
{
    const double root = sqrt(2 / M_PI);
    for (uint64_t i = 0; i < count; i++) y[i] = x[i] / 2 * (1 + tanh(root * (x[i] + cubic * x[i] * x[i] * x[i])));
}

void slc_gelu_backward_ref(uint64_t count, const double *x, const double *dy, double *dx)
{
    const double root = sqrt(2 / M_PI);
    for (uint64_t i = 0; i < count; i++) {
        double t = tanh(root * (x[i] + cubic * x[i] * x[i] * x[i]));
        double slope = root * (1 + 3 * cubic * x[i] * x[i]);
        dx[i] = dy[i] * ((1 + t) / 2 + x[i] / 2 * (1 - t * t) * slope);
    }
}
