/* The fast additions, compiled once for each instruction set. */
#ifndef SLC_KERNEL_RESIDUAL_CPU_H
#define SLC_KERNEL_RESIDUAL_CPU_H

#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/isa.h"

#include <sluice/dtype.h>
#include <stdbool.h>

typedef struct {
    sluice_dtype dtype;
    uint64_t channels;
    const void *x, *bias, *scale, *residual; /* all but x may be NULL */
    const slc_dropout *dropout;              /* may be NULL; otherwise its probability is above 0 */
    void *out;
    bool stream;
} slc_residual_forward_args;

typedef struct {
    sluice_dtype dtype;
    uint64_t rows, channels;
    const void *dout, *x, *bias, *scale; /* bias may be NULL */
    const slc_dropout *dropout;          /* may be NULL; otherwise its probability is above 0 */
    void *dx;
    float *sums; /* [channels] */
} slc_residual_backward_args;

typedef struct {
    sluice_dtype dtype;
    uint64_t rows, stride;
    const void *dy;
    float *sums; /* [columns] */
} slc_bias_args;

SLC_ISA_DECLARE(slc_residual_forward_range);  /* over ranges of elements */
SLC_ISA_DECLARE(slc_residual_backward_range); /* over ranges of columns */
SLC_ISA_DECLARE(slc_bias_range);              /* over ranges of columns */

#endif
