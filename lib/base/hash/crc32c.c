/* Takes eight bytes in a step, with the processor's instruction or with eight tables (Kounavis & Berry, "A systematic
 * approach to building high performance software-based CRC generators", ISCC 2005). The instruction waits three cycles
 * for the result of the one before, so long data is cut in three parts, whose instructions take turns. To join the
 * parts, the checksum of one is continued over as many zeros as the next one has bytes, and the two checksums are added
 * (Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel, 2011). */
#include "lib/base/hash/crc32c.h"

#include <pthread.h>
#include <string.h>

static const uint32_t polynomial = 0x82f63b78; /* in reversed bit order */
static uint32_t table[8][256];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        table[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++) table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 255];
}

uint32_t slc_crc32c_portable(uint32_t crc, const void *data, size_t bytes)
{
    pthread_once(&made, make_table);
    const unsigned char *at = data;
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
              table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    for (; bytes; bytes--) crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
    return ~crc;
}

#if defined(__x86_64__)
enum { PART = 1024 };
static uint32_t behind_zeros[4][256]; /* for each byte of a checksum, what PART zeros make of it */
static pthread_once_t made_zeros = PTHREAD_ONCE_INIT;

__attribute__((target("sse4.2"))) static void make_zeros(void)
{
    for (int bit = 0; bit < 32; bit++) {
        uint64_t crc = UINT64_C(1) << bit;
        for (int i = 0; i < PART; i += 8) crc = __builtin_ia32_crc32di(crc, 0);
        for (unsigned byte = 0; byte < 256; byte++)
            if (byte >> bit % 8 & 1) behind_zeros[bit / 8][byte] ^= (uint32_t)crc;
    }
}

static uint32_t pass_zeros(uint64_t crc)
{
    return behind_zeros[0][crc & 255] ^ behind_zeros[1][crc >> 8 & 255] ^ behind_zeros[2][crc >> 16 & 255] ^
           behind_zeros[3][crc >> 24 & 255];
}

static uint64_t word_at(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t wide = ~crc;
    if (bytes >= 3 * PART) pthread_once(&made_zeros, make_zeros);
    for (; bytes >= 3 * PART; bytes -= 3 * PART, at += 3 * PART) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < PART; i += 8) {
            wide = __builtin_ia32_crc32di(wide, word_at(at + i));
            second = __builtin_ia32_crc32di(second, word_at(at + PART + i));
            third = __builtin_ia32_crc32di(third, word_at(at + 2 * PART + i));
        }
        wide = pass_zeros(pass_zeros(wide) ^ second) ^ third;
    }
    for (; bytes >= 8; bytes -= 8, at += 8) wide = __builtin_ia32_crc32di(wide, word_at(at));
    crc = (uint32_t)wide;
    for (; bytes; bytes--) crc = __builtin_ia32_crc32qi(crc, *at++);
    return ~crc;
}
#endif

uint32_t slc_crc32c(uint32_t crc, const void *data, size_t bytes)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return by_instruction(crc, data, bytes);
#endif
    return slc_crc32c_portable(crc, data, bytes);
}
