/* AdamW on a contiguous range (formula: sluice/optimizer.h). One pass, 28 bytes an element; with a bf16 gradient and
 * bf16 values beside it 28 too. Elementwise: the same bits for any split of the range. */
#ifndef SLC_KERNEL_ADAMW_H
#define SLC_KERNEL_ADAMW_H

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>

/* In double, so that 1 - beta is what it should be: each factor that the loop uses is rounded to fp32 once. */
typedef struct {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    double gradient_factor;  /* each gradient is multiplied by this first */
    double bias_correction1; /* 1 - beta1^t */
    double bias_correction2; /* 1 - beta2^t */
} slc_adamw_settings;

/* `rounded`, if not NULL, gets the new values rounded to bf16. It overlaps nothing else. */
sluice_status slc_adamw(slc_stream *stream, const slc_adamw_settings *settings, uint64_t count,
                        sluice_dtype gradient_dtype, const void *gradient, float *value, float *exp_avg,
                        float *exp_avg_sq, void *rounded);

#endif
