/* Values whose sums, products, smallest, largest and means are exact in every data type of NCCL, so that a result is
 * known to the bit whatever the order in which it is made. */
#pragma once

#include "plugins/nccl/nccl_abi.h"
#include <stddef.h>
#include <stdint.h>

size_t slc_dtype_bytes(ncclDataType_t dtype);

/* Writes `value` as element i of an array; the value must be exact in the data type. */
void slc_value_write(void *array, size_t i, ncclDataType_t dtype, double value);

/* Returns the value that rank `rank` gives as element i of the operation `seed`, to be reduced over `size` ranks (at
 * most 4 for the types of one byte). `redop` is ncclNumOps if the value is multiplied by 2 before the sum. */
double slc_value_given(uint64_t seed, int rank, int size, size_t i, ncclRedOp_t redop);

/* Returns element i of the result, reduced over all ranks. */
double slc_value_reduced(uint64_t seed, int size, size_t i, ncclRedOp_t redop);

/* Fills `count` elements with rank `rank`'s values, of which the first is number `first`. */
void slc_values_give(void *array, size_t first, size_t count, ncclDataType_t dtype, uint64_t seed, int rank, int size,
                     ncclRedOp_t redop);

/* Returns the index of the first of `count` elements that differs from `expected` in a bit; `count` if none does. */
size_t slc_values_differ(const void *array, const void *expected, size_t count, ncclDataType_t dtype);
