/* LAMB with a frozen variance, for one whole parameter in float64. */
#ifndef SLC_KERNEL_FROZEN_LAMB_REF_H
#define SLC_KERNEL_FROZEN_LAMB_REF_H

#include "lib/kernels/lamb/frozen_lamb.h"

/* momentum: m_last, becomes m; received: m before the mask; fresh: f_last, becomes f; update: u; numbers: ||p||, ||u||,
 * the largest ratio. Of `range` it reads only count and the flags. */
void slc_frozen_lamb_ref(const slc_frozen_lamb_settings *settings, const slc_frozen_lamb_range *range,
                         const double *received, const double *value, const double *exp_avg_sq, double *momentum,
                         double *fresh, double *update, double numbers[3]);

#endif
