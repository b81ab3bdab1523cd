/* SHA-256 as in FIPS 180-4; the names follow section 6.2 of the standard. Processors that have instructions for it
 * (Intel, "Intel SHA Extensions", 2013) use them. */
#include "lib/base/hash/sha256.h"

#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#endif

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void take_block(uint32_t state[8], const unsigned char *p)
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++, p += 4)
        w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t++) {
        uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[t];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void take_blocks_by_words(uint32_t state[8], const unsigned char *p, size_t blocks)
{
    for (; blocks; blocks--, p += 64) take_block(state, p);
}

#if defined(__x86_64__)
/* The instructions keep a, b, e, f in one register and c, d, g, h in another, each from its highest word to its lowest,
 * and do two rounds at once with the lower two of four sums w + K. */
__attribute__((target("sha,sse4.1"))) static void take_blocks_by_instruction(uint32_t state[8], const unsigned char *p,
                                                                             size_t blocks)
{
    const __m128i bytes_turned = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
    __m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
    for (; blocks; blocks--, p += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4]; /* words 4 i to 4 i + 3 of the schedule, at i modulo 4 */
        for (int i = 0; i < 16; i++) {
            if (i < 4) {
                w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), bytes_turned);
            } else {
                const __m128i last = w[(i + 3) & 3];
                const __m128i seven_back = _mm_alignr_epi8(last, w[(i + 2) & 3], 4);
                const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]), seven_back);
                w[i & 3] = _mm_sha256msg2_epu32(sum, last);
            }
            const __m128i added = _mm_add_epi32(w[i & 3], _mm_loadu_si128((const __m128i *)(K + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    state[0] = (uint32_t)_mm_extract_epi32(abef, 3), state[1] = (uint32_t)_mm_extract_epi32(abef, 2);
    state[4] = (uint32_t)_mm_extract_epi32(abef, 1), state[5] = (uint32_t)_mm_extract_epi32(abef, 0);
    state[2] = (uint32_t)_mm_extract_epi32(cdgh, 3), state[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
    state[6] = (uint32_t)_mm_extract_epi32(cdgh, 1), state[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}

static bool has_instructions;
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static void ask(void)
{
    unsigned eax, ebx, ecx, edx;
    has_instructions =
        __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ebx & bit_SHA;
}
#endif

void slc_sha256_init(slc_sha256 *hash)
{
    *hash = (slc_sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static void take_blocks(slc_sha256 *hash, const unsigned char *p, size_t blocks)
{
#if defined(__x86_64__)
    pthread_once(&asked, ask);
    if (has_instructions && !hash->by_words) {
        take_blocks_by_instruction(hash->state, p, blocks);
        return;
    }
#endif
    take_blocks_by_words(hash->state, p, blocks);
}

void slc_sha256_add(slc_sha256 *hash, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    size_t used = hash->bytes % 64;
    hash->bytes += bytes;
    if (used) {
        size_t taken = bytes < 64 - used ? bytes : 64 - used;
        memcpy(hash->block + used, from, taken);
        from += taken;
        bytes -= taken;
        if (used + taken < 64) return;
        take_blocks(hash, hash->block, 1);
    }
    take_blocks(hash, from, bytes / 64);
    memcpy(hash->block, from + bytes / 64 * 64, bytes % 64);
}

void slc_sha256_finish(slc_sha256 *hash, char hex[65])
{
    uint64_t bits = hash->bytes * 8;
    unsigned char end[72] = {0x80};
    size_t zeros = (119 - hash->bytes % 64) % 64; /* fills up to byte 56 of a block, after the 0x80 */
    for (int i = 0; i < 8; i++) end[1 + zeros + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    slc_sha256_add(hash, end, 1 + zeros + 8);
    for (int i = 0; i < 8; i++) snprintf(hex + 8 * i, 9, "%08x", hash->state[i]);
}
