/* Copies between types. */
#ifndef SLC_KERNEL_CONVERT_H
#define SLC_KERNEL_CONVERT_H

#include "lib/kernels/kernel.h"

/* y[i] = x[i] for `count` elements, rounded as sluice_bf16_from_float where `to` is the smaller. y does not overlap x;
 * with from == to it may be x. */
sluice_status slc_convert(slc_stream *stream, sluice_dtype from, const void *x, sluice_dtype to, void *y,
                          uint64_t count);

#endif
