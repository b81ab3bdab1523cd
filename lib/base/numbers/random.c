/* Philox and Box & Muller. The loops are written so that the compiler can run several lanes at once: a big model's
 * first values take well under a second for each 100 million. */
#include "lib/base/numbers/random.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 10, PIECE = 256 }; /* PIECE: how many normals are drawn at a time, a multiple of 4 */

void slc_random_block(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u; /* the golden ratio and sqrt(3) - 1, as in the paper */
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t slc_random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t limit)
{
    uint32_t word[4];
    slc_random_block(seed, stream, index, word);
    uint64_t value = (uint64_t)word[1] << 32 | word[0];
    return (uint64_t)((unsigned __int128)value * limit >> 64);
}

/* Returns ln u for u in (0, 1]: u = 2^e m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 atanh((m - 1)/(m + 1)) by its
 * series. */
static float natural_log(float u)
{
    uint32_t bits;
    memcpy(&bits, &u, sizeof bits);
    uint32_t moved = bits - 0x3F3504F3u; /* the bits of sqrt(1/2) */
    int32_t exponent = (int32_t)moved >> 23;
    bits = (moved & 0x007FFFFFu) + 0x3F3504F3u;
    float m;
    memcpy(&m, &bits, sizeof m);
    float s = (m - 1.0f) / (m + 1.0f), q = s * s;
    float series = 1.0f + q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9))));
    return (float)exponent * 0.69314718f + 2.0f * s * series;
}

/* Computes cosine and sine of `quarters` quarter turns, 0 <= quarters < 4, by Taylor's series around the nearest
 * axis. */
static void cosine_sine(float quarters, float *cosine, float *sine)
{
    int32_t axis = (int32_t)(quarters + 0.5f);
    float x = (quarters - (float)axis) * 1.57079633f, q = x * x;
    float s = x * (1 - q / 6 * (1 - q / 20 * (1 - q / 42 * (1 - q / 72))));
    float c = 1 - q / 2 * (1 - q / 12 * (1 - q / 30 * (1 - q / 56 * (1 - q / 90))));
    float along = axis & 1 ? -s : c, across = axis & 1 ? c : s;
    *cosine = axis & 2 ? -along : along;
    *sine = axis & 2 ? -across : across;
}

/* Draws the normals of PIECE / 4 blocks from block `first` on. */
static void draw_piece(uint64_t seed, uint64_t stream, uint64_t first, float out[PIECE])
{
    uint32_t word[PIECE];
    for (uint32_t i = 0; i < PIECE / 4; i++) slc_random_block(seed, stream, first + i, &word[4 * i]);
    for (uint32_t i = 0; i < PIECE; i += 2) {
        float u = (float)((word[i] >> 8) + 1) * 0x1p-24f;
        float quarters = (float)(word[i + 1] >> 8) * 0x1p-22f;
        float radius = sqrtf(-2.0f * natural_log(u)), c, s;
        cosine_sine(quarters, &c, &s);
        out[i] = radius * c;
        out[i + 1] = radius * s;
    }
}

void slc_random_normal(uint64_t seed, uint64_t stream, uint64_t first, size_t count, float *out)
{
    float piece[PIECE];
    while (count) {
        uint64_t inside = first % PIECE;
        size_t take = PIECE - inside < count ? (size_t)(PIECE - inside) : count;
        draw_piece(seed, stream, (first - inside) / 4, piece);
        memcpy(out, piece + inside, take * sizeof *out);
        first += take;
        out += take;
        count -= take;
    }
}
