/* Private to tests/nccl/bed/hostnccl: reductions of each of NCCL's types. Sums are made in the order of their sources.
 * Types of less than 32 bits are summed as float and rounded once, to the nearest, ties to even; the 8 bit ones keep to
 * their largest finite value, as NCCL's do. Whole numbers wrap. */
#pragma once

#include "plugins/nccl/nccl_abi.h"

size_t hostnccl_type_bytes(ncclDataType_t type);
bool hostnccl_type_is_float(ncclDataType_t type);

/* out[i] = sources[0][i] op sources[1][i] …; out may be one of the sources. ncclAvg of whole numbers divides the sum;
 * that of floating-point numbers is the sum of what hostnccl_scale made. */
void hostnccl_reduce(ncclDataType_t type, ncclRedOp_t op, int count, const void *const *sources, void *out, size_t n);

/* out[i] = in[i] * *scalar, in the type. */
void hostnccl_scale(ncclDataType_t type, const void *scalar, const void *in, void *out, size_t n);

/* out[i] = in[i] / ranks, as ncclAvg scales floating-point numbers: times the float (or double) 1 / ranks. */
void hostnccl_scale_average(ncclDataType_t type, int ranks, const void *in, void *out, size_t n);

/* The small types, for tests too. */
float hostnccl_small_decode(ncclDataType_t type, unsigned code);
unsigned hostnccl_small_encode(ncclDataType_t type, float value);
