/* Loshchilov & Hutter, arXiv 1711.05101, algorithm 2, with epsilon outside the correction of the square root as in
 * sluice/optimizer.h. adamw_test.c covers this file. */
#include "lib/kernels/adamw/adamw.h"

#include <math.h>

void slc_adamw_ref(const slc_adamw_settings *settings, uint64_t count, const double *gradient, double *value,
                   double *exp_avg, double *exp_avg_sq)
{
    const double b1 = settings->beta1, b2 = settings->beta2, lr = settings->learning_rate;
    for (uint64_t i = 0; i < count; i++) {
        double g = settings->gradient_factor * gradient[i];
        exp_avg[i] = b1 * exp_avg[i] + (1 - b1) * g;
        exp_avg_sq[i] = b2 * exp_avg_sq[i] + (1 - b2) * g * g;
        value[i] -= lr * settings->weight_decay * value[i];
        double below = sqrt(exp_avg_sq[i]) / sqrt(settings->bias_correction2) + settings->epsilon;
        value[i] -= lr / settings->bias_correction1 * exp_avg[i] / below;
    }
}
