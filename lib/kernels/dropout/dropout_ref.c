/* Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11, section 3.3: Philox4x32 with ten rounds.
 * dropout_test.c covers this file. */
#include "lib/kernels/dropout/dropout.h"

#include <string.h>

void slc_philox_ref(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t low = key[0], high = key[1];
    memcpy(out, counter, 4 * sizeof *out);
    for (int round = 0; round < 10; round++) {
        uint64_t p = UINT64_C(0xd2511f53) * out[0], q = UINT64_C(0xcd9e8d57) * out[2];
        const uint32_t next[4] = {(uint32_t)(q >> 32) ^ out[1] ^ low, (uint32_t)q, (uint32_t)(p >> 32) ^ out[3] ^ high,
                                  (uint32_t)p};
        memcpy(out, next, sizeof next);
        low += 0x9e3779b9u, high += 0xbb67ae85u;
    }
}

double slc_dropout_factor_ref(const slc_dropout *dropout, uint64_t element)
{
    uint64_t index = dropout->first + element, block = index / 128 * 16 + index % 16;
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32)};
    const uint32_t key[2] = {(uint32_t)dropout->seed, (uint32_t)(dropout->seed >> 32)};
    uint32_t words[4], limit = (uint32_t)((double)dropout->probability * 0x1p16 + 0.5);
    slc_philox_ref(counter, key, words);
    uint32_t half = words[index / 32 % 4] >> (index / 16 % 2 ? 16 : 0) & 0xffff;
    return half >= limit ? (double)(float)(0x1p16 / (0x1p16 - limit)) : 0.0;
}
