/* AdamW on ranges of elements (formula: sluice/optimizer.h). One pass moves 28 bytes for each element, in fp32 and also
 * with a bf16 gradient and a bf16 copy of the values. It is elementwise: any split of a range gives the same bits. */
#pragma once

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>
#include <sluice/optimizer.h>
#include <stdbool.h>

/* Factors are kept in double, so that 1 - beta is accurate; each factor that the loop uses is rounded to fp32 once. */
typedef struct {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    double gradient_factor;         /* each gradient is multiplied by this first */
    double bias_correction1;        /* 1 - beta1^t */
    double bias_correction2;        /* 1 - beta2^t */
    const sluice_step_words *words; /* not NULL: kernels read gradient_factor and whether to do nothing there, when they
                                       run; memory of the stream's device */
} slc_adamw_settings;

/* Returns the usual constants, without decay, as after many steps. A caller that only measures how long updates take
 * needs no others. */
slc_adamw_settings slc_adamw_usual_settings(void);

/* A run of elements of one parameter; arrays are `count` long. */
typedef struct {
    uint64_t count;
    sluice_dtype gradient_dtype;
    const void *gradient;
    float *value, *exp_avg, *exp_avg_sq;
    void *rounded; /* receives the new values rounded to bf16; overlaps nothing else. NULL: not wanted */
    bool no_decay; /* weight_decay counts as 0 */
} slc_adamw_range;

/* Updates many ranges in one pass, cut between threads as if they were one range, so that small parameters cost no more
 * than large ones. Ranges do not overlap. */
sluice_status slc_adamw_many(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                             const slc_adamw_range *ranges);

/* The plain loop in float64. */
void slc_adamw_ref(const slc_adamw_settings *settings, uint64_t count, const double *gradient, double *value,
                   double *exp_avg, double *exp_avg_sq);
