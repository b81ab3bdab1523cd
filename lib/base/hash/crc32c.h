/* CRC-32C (Castagnoli's polynomial, RFC 3720 appendix B.4): tells a damaged file from a whole one. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues the checksum `crc` of some data (0: none yet) with `bytes` more. */
uint32_t slc_crc32c(uint32_t crc, const void *data, size_t bytes);

/* Does the same from tables only: for processors without the instruction, and for comparison. */
uint32_t slc_crc32c_portable(uint32_t crc, const void *data, size_t bytes);
