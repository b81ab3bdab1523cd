/* DeepSpeed 0.16.4's zoadam.py with the variance frozen; bias corrections and kept values are our own.
 * zero_one_test.c covers this file. */
#include "lib/kernels/zero_one/zero_one.h"

#include <math.h>

static double below(const slc_adamw_settings *s, double v)
{
    return sqrt(v) / sqrt(s->bias_correction2) + s->epsilon;
}

static double decay_of(const slc_adamw_settings *s, const slc_zero_one_plain *r, double w)
{
    return r->no_decay ? 0 : s->learning_rate * s->weight_decay * w;
}

void slc_zero_one_gradient_ref(const slc_adamw_settings *s, const slc_zero_one_plain *r, const double *g)
{
    for (uint64_t i = 0; i < r->count; i++) {
        double v = r->exp_avg_sq[i], fresh = r->mask && v == 0 ? 0 : g[i];
        r->exp_avg[i] = s->beta1 * r->exp_avg[i] + (1 - s->beta1) * fresh;
        double move = s->learning_rate / s->bias_correction1 * r->exp_avg[i] / below(s, v);
        r->value[i] -= decay_of(s, r, r->value[i]) + move;
    }
}

void slc_zero_one_local_ref(const slc_adamw_settings *s, const slc_zero_one_plain *r, const double *gradient)
{
    for (uint64_t i = 0; i < r->count; i++) {
        double v = r->exp_avg_sq[i], m = s->beta1 * r->exp_avg[i] + (1 - s->beta1) * s->gradient_factor * gradient[i];
        if (r->mask && v == 0) m = 0;
        double move = s->learning_rate / s->bias_correction1 * m / below(s, v), decay = decay_of(s, r, r->value[i]);
        if (r->begins && r->kept) r->kept[i] = r->value[i];
        r->exp_avg[i] = m;
        r->accumulator[i] = (r->begins ? 0 : r->accumulator[i]) - move - (r->decay_moves ? decay : 0);
        r->value[i] -= decay + move;
    }
}

void slc_zero_one_exchanged_ref(const slc_adamw_settings *s, double momentum_factor, double value_factor,
                                const slc_zero_one_plain *r, const double *y)
{
    for (uint64_t i = 0; i < r->count; i++) {
        double v = r->exp_avg_sq[i], got = r->mask && v == 0 ? 0 : y[i], before = r->value[i];
        if (!r->begins) before = r->kept ? r->kept[i] : before - r->accumulator[i];
        r->exp_avg[i] = momentum_factor * got;
        r->value[i] = (r->no_decay ? 1 : value_factor) * before + got / below(s, v);
    }
}
