/* The rule of ownership, which communication, the engine and the planner share. A buffer of `elements` is cut in base
 * blocks of `block_elements` = B (the last may be shorter); every block's length is a multiple of the number of ranks,
 * N = `world`, and rank r owns the r-th N-th of every block. In block b, of length L = min(B, elements - b * B), rank r
 * owns
 *   in the whole layout: [b * B + r * L / N, b * B + (r + 1) * L / N)
 *   in the shard layout, which holds the parts of one rank only, one after another: L / N elements from b * B / N on.
 * Everything counts elements. A world of 1 owns whole blocks, and its two layouts are the same. */
#pragma once

#include <stdint.h>

/* A run of elements that one rank owns: a rank's part of a block, or a piece of it. */
typedef struct {
    uint64_t first, count; /* in the whole layout */
    uint64_t shard_first;  /* where it begins in the shard layout */
} slc_part;

static inline uint64_t slc_block_length(uint64_t elements, uint64_t block_elements, uint64_t block)
{
    const uint64_t left = elements - block * block_elements;
    return left < block_elements ? left : block_elements;
}

/* The part of block `block` that `rank` owns. */
static inline slc_part slc_part_of_rank(uint64_t elements, uint64_t block_elements, uint64_t block, uint32_t world,
                                        uint32_t rank)
{
    const uint64_t begin = block * block_elements;
    const uint64_t count = slc_block_length(elements, block_elements, block) / world;
    return (slc_part){.first = begin + rank * count, .count = count, .shard_first = begin / world};
}

/* The rank that owns an element of the whole layout. */
static inline uint32_t slc_owner_of(uint64_t elements, uint64_t block_elements, uint32_t world, uint64_t element)
{
    const uint64_t block = element / block_elements;
    const uint64_t count = slc_block_length(elements, block_elements, block) / world;
    return (uint32_t)((element - block * block_elements) / count);
}
