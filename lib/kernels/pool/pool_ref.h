/* The plain loops of pool.h in float64. */
#ifndef SLC_KERNEL_POOL_REF_H
#define SLC_KERNEL_POOL_REF_H

#include "lib/kernels/pool/pool.h"

void slc_pool_forward_ref(slc_pool_kind kind, uint64_t batch, uint64_t tokens, uint64_t channels, const double *x,
                          double *y);
void slc_pool_backward_ref(slc_pool_kind kind, uint64_t batch, uint64_t tokens, uint64_t channels, const double *dy,
                           double *dx);

#endif
