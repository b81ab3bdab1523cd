/* The plain loops of gemm.h in float64. The caller has rounded A, B, bias, residual and C to the shape's types. */
#ifndef SLC_KERNEL_GEMM_REF_H
#define SLC_KERNEL_GEMM_REF_H

#include "lib/kernels/gemm/gemm.h"

void slc_gemm_ref(const slc_gemm_shape *shape, const double *a, const double *b, const double *bias,
                  const double *residual, double *c);

#endif
