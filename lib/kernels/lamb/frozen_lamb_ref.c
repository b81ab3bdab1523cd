/* DeepSpeed 0.16.4's OnebitLamb after the freeze, with bias corrections.
 * frozen_lamb_test.c covers this file. */
#include "lib/kernels/lamb/frozen_lamb.h"

#include <math.h>

void slc_frozen_lamb_ref(const slc_frozen_lamb_settings *settings, const slc_frozen_lamb_range *range,
                         const double *received, const double *value, const double *exp_avg_sq, double *momentum,
                         double *fresh, double *update, double numbers[3])
{
    const slc_adamw_settings *s = &settings->adam;
    const double decay = range->no_decay ? 0 : s->weight_decay;
    double moves = 0, updates = 0, most = 0;
    for (uint64_t i = 0; i < range->count; i++) {
        const bool masked = range->mask && exp_avg_sq[i] == 0;
        const double m = masked ? 0 : received[i], g = (m - s->beta1 * momentum[i]) / (1 - s->beta1);
        fresh[i] = s->beta2 * fresh[i] + (1 - s->beta2) * g * g;
        momentum[i] = m;
        const double below = sqrt(exp_avg_sq[i] / s->bias_correction2) + s->epsilon;
        const double move = m / s->bias_correction1 / below;
        const double ratio = below / (sqrt(fresh[i] / settings->fresh_correction) + s->epsilon);
        update[i] = move + decay * value[i];
        moves += move * move, updates += update[i] * update[i];
        if (ratio > most && (!masked || range->counts_masked)) most = ratio;
    }
    numbers[0] = sqrt(moves), numbers[1] = sqrt(updates), numbers[2] = most;
}
