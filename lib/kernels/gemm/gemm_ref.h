/* The plain loops of gemm.h in float64. A, B, bias, residual and C hold what was rounded to the shape's types before.
 * packed_b is not looked at. */
#ifndef SLC_KERNEL_GEMM_REF_H
#define SLC_KERNEL_GEMM_REF_H

#include "lib/kernels/gemm/gemm.h"

void slc_gemm_ref(const slc_gemm_shape *shape, const double *a, const double *b, const double *bias,
                  const double *residual, double *c);

#endif
