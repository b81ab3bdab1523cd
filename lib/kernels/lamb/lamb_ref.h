/* LAMB for one whole parameter in float64. */
#ifndef SLC_KERNEL_LAMB_REF_H
#define SLC_KERNEL_LAMB_REF_H

#include "lib/kernels/lamb/lamb.h"

/* norms: of the values before the update, and of the update u. */
void slc_lamb_ref(const slc_adamw_settings *settings, bool no_decay, uint64_t count, const double *gradient,
                  double *value, double *exp_avg, double *exp_avg_sq, double norms[2]);

#endif
