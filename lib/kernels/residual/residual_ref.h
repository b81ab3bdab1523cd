/* The plain loops of residual.h in float64. */
#ifndef SLC_KERNEL_RESIDUAL_REF_H
#define SLC_KERNEL_RESIDUAL_REF_H

#include <stdint.h>

void slc_add_ref(uint64_t count, const double *a, const double *b, double *out);
void slc_bias_backward_ref(uint64_t rows, uint64_t columns, const double *dy, double *dbias, int fresh);

#endif
