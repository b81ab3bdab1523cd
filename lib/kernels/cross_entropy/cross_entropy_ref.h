/* The plain loop of cross_entropy.h in float64. */
#ifndef SLC_KERNEL_CROSS_ENTROPY_REF_H
#define SLC_KERNEL_CROSS_ENTROPY_REF_H

#include <stdint.h>

void slc_cross_entropy_ref(uint64_t rows, uint64_t classes, double *logits, const int32_t *targets, double smoothing,
                           double gradient_scale, double *losses);

#endif
