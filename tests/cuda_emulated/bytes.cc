/* Accesses that the runtime makes for the program, byte by byte or word by word, so that sanitizers see each of them.
 * This file is compiled with the sanitizers, and without turning loops into memcpy. */
#include "tests/cuda_emulated/runtime.h"

void emulated_copy_bytes(void *to, const void *from, size_t bytes)
{
    unsigned char *out = (unsigned char *)to;
    const unsigned char *in = (const unsigned char *)from;
    size_t i = 0;
    if (((uintptr_t)out | (uintptr_t)in) % 8 == 0)
        for (; i + 8 <= bytes; i += 8) *(uint64_t *)(out + i) = *(const uint64_t *)(in + i);
    for (; i < bytes; i++) out[i] = in[i];
}

void emulated_set_bytes(void *at, int value, size_t bytes)
{
    unsigned char *out = (unsigned char *)at;
    size_t i = 0;
    if ((uintptr_t)out % 8 == 0)
        for (; i + 8 <= bytes; i += 8) *(uint64_t *)(out + i) = (unsigned char)value * 0x0101010101010101ull;
    for (; i < bytes; i++) out[i] = (unsigned char)value;
}
