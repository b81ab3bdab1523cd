/* The plain loops of residual.h in float64. */
#ifndef SLC_KERNEL_RESIDUAL_REF_H
#define SLC_KERNEL_RESIDUAL_REF_H

#include "lib/kernels/residual/residual.h"

void slc_residual_forward_ref(uint64_t rows, uint64_t channels, const double *x, const double *bias,
                              const slc_dropout *dropout, const double *scale, const double *residual, double *out);
void slc_residual_backward_ref(uint64_t rows, uint64_t channels, const double *dout, const double *x,
                               const double *bias, const slc_dropout *dropout, const double *scale, double *dx,
                               double *dscale, int fresh);
void slc_bias_backward_ref(uint64_t rows, uint64_t columns, const double *dy, uint64_t stride, double *dbias,
                           int fresh);

#endif
