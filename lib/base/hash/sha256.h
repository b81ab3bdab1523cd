/* SHA-256 (FIPS 180-4), used to name contents. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t state[8];
    uint64_t bytes; /* number of bytes added so far */
    unsigned char block[64];
    bool by_words; /* set after init: not by the processor's instructions, for comparison */
} slc_sha256;

void slc_sha256_init(slc_sha256 *hash);
void slc_sha256_add(slc_sha256 *hash, const void *data, size_t bytes);
/* Writes 64 digits and a final 0. Call init before another use. */
void slc_sha256_finish(slc_sha256 *hash, char hex[65]);
