/* You et al., arXiv 1904.00962, algorithm 2, with phi(z) = z and a ratio of 1 if a norm is 0.
 * lamb_test.c covers this file. */
#include "lib/kernels/lamb/lamb.h"

#include <math.h>

static double update_of(const slc_adamw_settings *s, double decay, double value, double m, double v)
{
    return m / s->bias_correction1 / (sqrt(v / s->bias_correction2) + s->epsilon) + decay * value;
}

void slc_lamb_ref(const slc_adamw_settings *settings, bool no_decay, uint64_t count, const double *gradient,
                  double *value, double *exp_avg, double *exp_avg_sq, double norms[2])
{
    const double b1 = settings->beta1, b2 = settings->beta2, decay = no_decay ? 0 : settings->weight_decay;
    double values = 0, updates = 0;
    for (uint64_t i = 0; i < count; i++) {
        double g = settings->gradient_factor * gradient[i];
        exp_avg[i] = b1 * exp_avg[i] + (1 - b1) * g;
        exp_avg_sq[i] = b2 * exp_avg_sq[i] + (1 - b2) * g * g;
        values += value[i] * value[i];
        updates += pow(update_of(settings, decay, value[i], exp_avg[i], exp_avg_sq[i]), 2);
    }
    norms[0] = sqrt(values);
    norms[1] = sqrt(updates);
    double trust = norms[0] > 0 && norms[1] > 0 ? norms[0] / norms[1] : 1;
    for (uint64_t i = 0; i < count; i++)
        value[i] -= settings->learning_rate * trust * update_of(settings, decay, value[i], exp_avg[i], exp_avg_sq[i]);
}
