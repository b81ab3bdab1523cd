/* Random orders that need no memory. Any thread. */
#pragma once

#include <stdint.h>

/* Returns the place to which `place` goes in permutation `stream` of [0, count), place < count: a function of (seed,
 * stream, count, place) alone. A Feistel network over the next power of four, walked until it is inside again (Black
 * and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). */
uint64_t slc_permutation_place(uint64_t seed, uint64_t stream, uint64_t count, uint64_t place);
