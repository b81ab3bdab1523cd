/* The plain loop of adamw.h in float64. */
#ifndef SLC_KERNEL_ADAMW_REF_H
#define SLC_KERNEL_ADAMW_REF_H

#include "lib/kernels/adamw/adamw.h"

void slc_adamw_ref(const slc_adamw_settings *settings, uint64_t count, const double *gradient, double *value,
                   double *exp_avg, double *exp_avg_sq);

#endif
