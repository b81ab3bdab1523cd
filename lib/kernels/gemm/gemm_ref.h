/* The plain loop of gemm.h in float64. */
#ifndef SLC_KERNEL_GEMM_REF_H
#define SLC_KERNEL_GEMM_REF_H

#include "lib/kernels/gemm/gemm.h"

void slc_gemm_ref(const slc_gemm_shape *shape, const double *a, const double *b, const double *bias, double *c);

#endif
