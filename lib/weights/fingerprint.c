/* The pass over whole blocks is compiled for vectors of 64, 32 and 16 bytes. Two of them go through a block together,
 * because one alone would wait for its own sum, and so they go through it 1, 2 or 4 times: it stays in the nearest
 * cache. */
#include "lib/weights/fingerprint.h"

#include <string.h>

enum { LANES = SLC_FINGERPRINT_LANES, BLOCK_BYTES = SLC_FINGERPRINT_BLOCK * sizeof(float), STEP_BYTES = 8 * LANES };

static const uint64_t multiplier = UINT64_C(0x9e3779b97f4a7c15); /* odd */

/* A word has two fp32 values. The exponent's lowest place added to it carries into the sign's place if all its bits are
 * set, which means NaN or infinity, and never further. */
static const uint64_t exponents = UINT64_C(0x7f8000007f800000), lowest_places = UINT64_C(0x0080000000800000),
                      carries = UINT64_C(0x8000000080000000);

static inline __attribute__((always_inline)) uint64_t mix(uint64_t x)
{
    x *= multiplier;
    return x ^ x >> 32;
}

#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

/* NAME returns other than 0 in `carries` if a value is not finite. lane: NULL if nobody asks for the fingerprint. */
#define DEFINE_PASS(NAME, BYTES, TARGET)                                                                               \
    typedef uint64_t NAME##_words __attribute__((vector_size(BYTES)));                                                 \
    TARGET static inline __attribute__((always_inline))                                                                \
    uint64_t NAME##_either(const char *block, size_t blocks, uint64_t *lane)                                           \
    {                                                                                                                  \
        enum { WORDS = (BYTES) / 8 };                                                                                  \
        NAME##_words a, b, found_a = {0}, found_b = {0};                                                               \
        for (; blocks; blocks--, block += BLOCK_BYTES)                                                                 \
            for (int first = 0; first < LANES; first += 2 * WORDS) {                                                   \
                NAME##_words sum_a = {0}, sum_b = {0};                                                                 \
                for (int at = 8 * first; at < BLOCK_BYTES; at += STEP_BYTES) {                                         \
                    memcpy(&a, block + at, sizeof a);                                                                  \
                    memcpy(&b, block + at + sizeof a, sizeof b);                                                       \
                    found_a |= (a & exponents) + lowest_places;                                                        \
                    found_b |= (b & exponents) + lowest_places;                                                        \
                    if (lane) sum_a = ROTATE(sum_a, 29) + a;                                                           \
                    if (lane) sum_b = ROTATE(sum_b, 29) + b;                                                           \
                }                                                                                                      \
                if (!lane) continue;                                                                                   \
                memcpy(&a, lane + first, sizeof a);                                                                    \
                memcpy(&b, lane + first + WORDS, sizeof b);                                                            \
                a = (ROTATE(a, 23) ^ sum_a) * multiplier;                                                              \
                b = (ROTATE(b, 23) ^ sum_b) * multiplier;                                                              \
                memcpy(lane + first, &a, sizeof a);                                                                    \
                memcpy(lane + first + WORDS, &b, sizeof b);                                                            \
            }                                                                                                          \
        uint64_t any = 0;                                                                                              \
        for (int i = 0; i < WORDS; i++) any |= found_a[i] | found_b[i];                                                \
        return any;                                                                                                    \
    }                                                                                                                  \
    TARGET static uint64_t NAME(const void *blocks, size_t count, uint64_t *lane)                                      \
    {                                                                                                                  \
        return lane ? NAME##_either(blocks, count, lane) : NAME##_either(blocks, count, NULL);                         \
    }

typedef uint64_t block_pass(const void *blocks, size_t count, uint64_t *lane);

static inline __attribute__((always_inline)) bool add_by(block_pass *pass, slc_fingerprint *fingerprint,
                                                         const float *values, size_t count)
{
    const size_t whole = count / SLC_FINGERPRINT_BLOCK, rest = count % SLC_FINGERPRINT_BLOCK;
    uint64_t *lane = fingerprint ? fingerprint->lane : NULL;
    uint64_t found = pass(values, whole, lane);
    if (rest) {
        float last[SLC_FINGERPRINT_BLOCK] = {0};
        memcpy(last, values + whole * SLC_FINGERPRINT_BLOCK, rest * sizeof *last);
        found |= pass(last, 1, lane);
    }
    if (fingerprint) fingerprint->values += count;
    return !(found & carries);
}

#if defined(__x86_64__)
DEFINE_PASS(pass_64, 64, __attribute__((target("avx512f,avx512dq,avx512vl"))))
DEFINE_PASS(pass_32, 32, __attribute__((target("avx2"))))

static bool add_by_64(slc_fingerprint *fingerprint, const float *values, size_t count)
{
    return add_by(pass_64, fingerprint, values, count);
}

static bool add_by_32(slc_fingerprint *fingerprint, const float *values, size_t count)
{
    return add_by(pass_32, fingerprint, values, count);
}
#endif

DEFINE_PASS(pass_16, 16, )

static bool add_by_16(slc_fingerprint *fingerprint, const float *values, size_t count)
{
    return add_by(pass_16, fingerprint, values, count);
}

slc_fingerprint_adder *slc_fingerprint_way(int way)
{
#if defined(__x86_64__)
    if (way == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512vl")
                   ? add_by_64
                   : NULL;
    if (way == 1) return __builtin_cpu_supports("avx2") ? add_by_32 : NULL;
#endif
    return way == 2 ? add_by_16 : NULL;
}

bool slc_fingerprint_add(slc_fingerprint *fingerprint, const float *values, size_t count)
{
    slc_fingerprint_adder *add = NULL;
    for (int way = 0; !add; way++) add = slc_fingerprint_way(way);
    return add(fingerprint, values, count);
}

uint64_t slc_fingerprint_end(const slc_fingerprint *fingerprint)
{
    uint64_t hash = fingerprint->values;
    for (int i = 0; i < LANES; i++) hash = mix(hash ^ fingerprint->lane[i]);
    return hash;
}

uint64_t slc_fingerprint_join(uint64_t hash, uint64_t fingerprint)
{
    return mix(hash ^ fingerprint);
}
