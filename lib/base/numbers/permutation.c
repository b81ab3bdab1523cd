/* A permutation takes four rounds, each of which uses a block of the counter-based generator. */
#include "lib/base/numbers/permutation.h"

#include "lib/base/numbers/random.h"

enum { ROUNDS = 4 };

uint64_t slc_permutation_place(uint64_t seed, uint64_t stream, uint64_t count, uint64_t place)
{
    unsigned half = 1;
    while (half < 32 && (uint64_t)1 << 2 * half < count) half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = place >> half, right = place & mask;
        for (unsigned round = 0; round < ROUNDS; round++) {
            uint32_t drawn[4];
            slc_random_block(seed, stream, (uint64_t)round << 32 | right, drawn);
            uint64_t next = left ^ (drawn[0] & mask);
            left = right;
            right = next;
        }
        place = left << half | right;
    } while (place >= count);
    return place;
}
