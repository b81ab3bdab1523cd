/* The plain loops of gelu.h in float64. */
#ifndef SLC_KERNEL_GELU_REF_H
#define SLC_KERNEL_GELU_REF_H

#include "lib/kernels/gelu/gelu.h"

void slc_gelu_forward_ref(slc_gelu_kind kind, uint64_t count, const double *x, double *y);
void slc_gelu_backward_ref(slc_gelu_kind kind, uint64_t count, const double *x, const double *dy, double *dx);
void slc_tanh_forward_ref(uint64_t count, const double *x, double *y);
void slc_tanh_backward_ref(uint64_t count, const double *y, const double *dy, double *dx);

#endif
