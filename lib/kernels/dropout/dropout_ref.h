/* The plain loop of dropout.h. */
#ifndef SLC_KERNEL_DROPOUT_REF_H
#define SLC_KERNEL_DROPOUT_REF_H

#include "lib/kernels/dropout/dropout.h"

/* Runs one block; counter and key are as in the paper, word 0 first. */
void slc_philox_ref(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Returns 0, or the factor of a kept element. */
double slc_dropout_factor_ref(const slc_dropout *dropout, uint64_t element);

#endif
