/* Dropout, Srivastava et al., JMLR 15 (2014), with a counter for a generator: whether an element is kept is a function
 * of (seed, index of the element) alone, so masks are never stored, backward sees forward's, and neither ranks, threads
 * nor the split of an array into calls matter.
 *
 * The generator is Philox4x32-10, Salmon et al., SC11. The key is the seed; elements 64 g + 16 w + j, j < 16, w < 4,
 * get word w of the block with counter (16 g + j, 0) as two 64-bit numbers: sixteen blocks side by side give 64
 * elements in their order. An element is kept where its word is at least probability * 2^32, rounded to the nearest. */
#ifndef SLC_KERNEL_DROPOUT_H
#define SLC_KERNEL_DROPOUT_H

#include "lib/kernels/kernel.h"

typedef struct {
    float probability; /* of being dropped, in [0, 1); 0: the identity, which costs nothing */
    uint64_t seed;     /* the caller makes it from step, layer and place */
    uint64_t first;    /* index of element 0 of this call */
} slc_dropout;

/* y = 0 where dropped, x / (1 - probability) where kept (times the reciprocal, rounded to fp32). Forward and backward
 * alike. y may be x. Errors: ARGUMENT (probability). */
sluice_status slc_dropout_apply(slc_stream *stream, const slc_dropout *dropout, sluice_dtype dtype, uint64_t count,
                                const void *x, void *y);

/* For kernels that drop: ARGUMENT unless dropout is NULL or its probability is in [0, 1). */
sluice_status slc_dropout_check(const slc_dropout *dropout, const char *kernel);

#endif
