/* FNV-1a, 64 bits (Fowler, Noll & Vo): a hash that tells contents apart, no more. Start with SLC_FNV_START; feeding
 * data in pieces, one after another, gives the same hash as feeding it at once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SLC_FNV_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t slc_fnv(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}
