/* The plain loops of gelu.h in float64. */
#ifndef SLC_KERNEL_GELU_REF_H
#define SLC_KERNEL_GELU_REF_H

#include <stdint.h>

void slc_gelu_forward_ref(uint64_t count, const double *x, double *y);
void slc_gelu_backward_ref(uint64_t count, const double *x, const double *dy, double *dx);

#endif
