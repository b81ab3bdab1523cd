/* Compares each row of an array with the same row of another one, as the output of a block with its input:
 *   out[r][0] = |y_r| / |x_r|            0 if |x_r| is
 *   out[r][1] = x_r y_r / (|x_r| |y_r|)  the cosine of the angle between them; 0 if a norm is
 * Both are of single rows, so that a mean over rows is that over tokens. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

typedef struct {
    sluice_dtype dtype;
    uint64_t rows, channels;
    const void *x, *y;
    void *out; /* [rows][2], fp32 */
} slc_likeness_args;

sluice_status slc_likeness(sluice_stream *stream, const slc_likeness_args *args);

/* ---- Forms ---- */

void slc_likeness_ref(const slc_likeness_args *args);

SLC_ISA_DECLARE(slc_likeness_range); /* over ranges of rows */
SLC_DEVICE_DECLARE(slc_likeness);
