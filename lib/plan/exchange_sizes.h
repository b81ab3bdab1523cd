/* Bytes that compressed exchanges keep and move, worked out from lengths alone, so that profiles for other worlds, and
 * of jobs that were never compressed, can be planned. The authority is lib/kernels/compress/compress_group.h and
 * slc_comm_exchange_bytes; tests/onebit/exchange_sizes_test.c compares both with this file. */
#pragma once

#include "lib/plan/job.h"

/* Sizes of an exchange of `count` tensors that n = `world` ranks exchange together, each tensor with one scale;
 * tensors[t] is a length in elements. A tensor is padded to N elements, a multiple of n * lcm(n, 8), and cut in chunks
 * of C = N / n. In fp32, with arrays at multiples of 64 bytes:
 *   worker   N sums, n scales and a room of 832 bytes     server   C sums, a scale and bins of 384 bytes
 *   packet   of one rank: a scale and C / 8 bytes of bits for each tensor in turn
 *   packets  n packets, each at a multiple of 64 bytes
 *   results  as many bytes; with `messages` twice as many (what arrives from ranks without shared memory)
 *   wire     n packets without that alignment
 * With one rank nothing is exchanged and all sizes are 0. A size that overflows is UINT64_MAX. */
slc_exchange_sizes slc_exchange_of(const uint64_t *tensors, uint32_t count, uint32_t world, bool messages);

/* Returns the sizes of an exchange of two units' tensors together, as those of one unit. */
slc_exchange_sizes slc_exchange_join(const slc_exchange_sizes *a, const slc_exchange_sizes *b, uint32_t world);
