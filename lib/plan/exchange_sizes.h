/* What compressed exchanges keep and move, in bytes, worked out here from lengths alone, so that profiles of other
 * worlds, and of jobs that were never compressed, can be planned. The truth is lib/kernels/compress/compress_group.h
 * and slc_comm_exchange_bytes; tests/exchange_sizes_test.c holds both against each other. */
#ifndef SLC_PLAN_EXCHANGE_SIZES_H
#define SLC_PLAN_EXCHANGE_SIZES_H

#include "lib/plan/job.h"

/* Of `count` tensors of so many elements that n ranks exchange together, each with one scale. A tensor is padded to N,
 * a multiple of n * lcm(n, 8), in chunks of C = N / n. In fp32, arrays at multiples of 64 bytes:
 *   worker   N sums and n scales        server   C sums and a scale
 *   packet   of one rank: a scale and C / 8 bytes of bits, tensor behind tensor
 *   packets  n packets, each at a multiple of 64 bytes
 *   results  as many bytes, `messages`: twice as many (what arrives from ranks without shared memory)
 *   wire     n packets
 * With one rank nothing is exchanged: all 0. What does not fit is UINT64_MAX. */
slc_exchange_sizes slc_exchange_of(const uint64_t *tensors, uint32_t count, uint32_t world, bool messages);

/* Of all tensors of two units as one. */
slc_exchange_sizes slc_exchange_join(const slc_exchange_sizes *a, const slc_exchange_sizes *b, uint32_t world);

#endif
