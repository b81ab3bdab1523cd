/* Copies between types. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

/* y[i] = x[i] for `count` elements, rounded as by sluice_bf16_from_float if `to` is the smaller type. y does not
 * overlap x, except that it may be x if from == to. */
sluice_status slc_convert(sluice_stream *stream, sluice_dtype from, const void *x, sluice_dtype to, void *y,
                          uint64_t count);

/* ---- Forms ---- */

typedef struct {
    sluice_dtype from, to;
    const void *x;
    void *y;
    bool stream;
} slc_convert_args;

SLC_ISA_DECLARE(slc_convert_range); /* over ranges of elements */
SLC_DEVICE_DECLARE(slc_convert);    /* between two different types */
