/* The fast AdamW, compiled once for each instruction set. */
#ifndef SLC_KERNEL_ADAMW_CPU_H
#define SLC_KERNEL_ADAMW_CPU_H

#include "lib/kernels/isa.h"

#include <sluice/dtype.h>

typedef struct {
    sluice_dtype gradient_dtype;
    const void *gradient;
    void *rounded; /* bf16, or NULL */
    float *value, *exp_avg, *exp_avg_sq;
    float gradient_factor, beta1, beta2, rest1, rest2; /* rest: 1 - beta */
    float decay;                                       /* learning_rate * weight_decay */
    float step;                                        /* learning_rate / bias_correction1 */
    float rescale;                                     /* 1 / sqrt(bias_correction2) */
    float epsilon;
} slc_adamw_args;

SLC_ISA_DECLARE(slc_adamw_range);

#endif
