/* Random numbers that depend on (seed, stream, index) only: they are the same on every rank, in any order and in any
 * pieces. The generator is Philox 4x32 with 10 rounds, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
 * 2011. Normals come from Box & Muller's transform in plain IEEE arithmetic, so they have the same bits with every C
 * library. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Draws four independent uniform words: block `index` of `stream`. */
void slc_random_block(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4]);

/* Draws a uniform number in [0, limit), limit > 0; the bias is below limit / 2^64. */
uint64_t slc_random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t limit);

/* Draws elements [first, first + count) of a stream of standard normals. */
void slc_random_normal(uint64_t seed, uint64_t stream, uint64_t first, size_t count, float *out);
