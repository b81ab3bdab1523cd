/* Dropout, Srivastava et al., JMLR 15 (2014), with a counter-based generator: whether an element is kept depends only
 * on (seed, index of the element). So masks are never stored, backward sees the same mask as forward, and neither
 * ranks, threads nor the split of an array into calls matter.
 *
 * The generator is Philox4x32-10, Salmon et al., SC11. The key is the seed; elements 128 g + 32 w + 16 h + j, j <
 * 16, h < 2, w < 4, use half h (0: the lower) of word w of the block with counter (16 g + j, 0) as two 64-bit
 * numbers: sixteen neighbouring blocks give 128 elements in their order. With p = round(probability * 2^16) an
 * element is dropped if its half is below p, and kept ones are multiplied by 2^16 / (2^16 - p), rounded to fp32, so
 * that means stay the same. */
#pragma once

#include "lib/kernels/kernel.h"

typedef struct {
    float probability; /* probability of being dropped, 0 to 65535/65536; 0: the identity, which costs nothing */
    uint64_t seed;     /* made by the caller from step, layer and place */
    uint64_t first;    /* index of element 0 of this call */
} slc_dropout;

/* The factors of this many elements are made together; dropout_lanes.h needs room for as many on either side of a run.
 */
enum { SLC_DROPOUT_GROUP = 128 };

/* Checks the dropout that a kernel was given: returns ARGUMENT unless dropout is NULL or its probability is in range.
 */
sluice_status slc_dropout_check(const slc_dropout *dropout, const char *kernel);

/* ---- Forms ---- */

/* The plain loop: runs one block; counter and key are as in the paper, word 0 first. */
void slc_philox_ref(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Returns 0, or the factor of a kept element. */
double slc_dropout_factor_ref(const slc_dropout *dropout, uint64_t element);
