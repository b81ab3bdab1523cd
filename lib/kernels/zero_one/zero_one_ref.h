/* The rules of zero_one.h in float64, the oracle of its tests. */
#ifndef SLC_KERNEL_ZERO_ONE_REF_H
#define SLC_KERNEL_ZERO_ONE_REF_H

#include "lib/kernels/zero_one/zero_one.h"

/* The arrays of slc_zero_one_range; kept NULL: w0 is w - u. */
typedef struct {
    uint64_t count;
    double *value, *exp_avg, *accumulator, *kept;
    const double *exp_avg_sq;
    bool no_decay, decay_moves, mask, begins;
} slc_zero_one_plain;

void slc_zero_one_gradient_ref(const slc_adamw_settings *settings, const slc_zero_one_plain *range, const double *g);
void slc_zero_one_local_ref(const slc_adamw_settings *settings, const slc_zero_one_plain *range,
                            const double *gradient);
void slc_zero_one_exchanged_ref(const slc_adamw_settings *settings, double momentum_factor, double value_factor,
                                const slc_zero_one_plain *range, const double *y);

#endif
