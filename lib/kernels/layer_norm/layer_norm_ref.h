/* The plain loops of layer_norm.h in float64. */
#ifndef SLC_KERNEL_LAYER_NORM_REF_H
#define SLC_KERNEL_LAYER_NORM_REF_H

#include <stdint.h>

void slc_layer_norm_forward_ref(uint64_t rows, uint64_t channels, const double *x, const double *residual, double *sum,
                                const double *gamma, const double *beta, double epsilon, double *y, double *mean,
                                double *rstd);
void slc_layer_norm_backward_ref(uint64_t rows, uint64_t channels, const double *dy, const double *x,
                                 const double *gamma, const double *mean, const double *rstd, const double *dx_add,
                                 double *dx_out, double *dgamma, double *dbeta, int fresh);

#endif
