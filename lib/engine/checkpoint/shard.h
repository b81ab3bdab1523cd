/* The file of a checkpoint that one rank writes: a header, a table of ranges, then their elements, fp32 and little
 * endian, in the table's order (docs/formats.md). These functions convert header and table from and to bytes. Private
 * to lib/engine. */
#pragma once

#include <sluice/status.h>
#include <stdint.h>

enum { SLC_SHARD_VERSION = 1, SLC_SHARD_HEADER_BYTES = 64, SLC_SHARD_RANGE_BYTES = 32 };

/* Elements [first, first + count) of a parameter's value (array 0) or of its optimizer state number array - 1. */
typedef struct {
    uint32_t param, array;
    uint64_t first, count;
    uint32_t crc32c;
} slc_shard_range;

typedef struct {
    uint32_t rank, world;
    uint64_t step;
    uint64_t range_count;
    slc_shard_range *ranges;
    uint32_t crc32c; /* of header and table */
} slc_shard;

/* Bytes of header and table: the elements begin there. */
static inline uint64_t slc_shard_head_bytes(uint64_t range_count)
{
    return SLC_SHARD_HEADER_BYTES + SLC_SHARD_RANGE_BYTES * range_count;
}

/* Fills slc_shard_head_bytes(range_count) bytes and sets shard->crc32c. */
void slc_shard_encode(slc_shard *shard, unsigned char *head);

/* Reads all but the ranges from the first SLC_SHARD_HEADER_BYTES of a file of `file_bytes`. Errors: FORMAT (not such a
 * file, a newer version, impossible lengths). */
sluice_status slc_shard_decode_header(const unsigned char *head, uint64_t file_bytes, slc_shard *out);
/* Reads the table that follows the header; `ranges` is allocated, the caller frees it. Errors: FORMAT (checksum,
 * lengths that do not add up to the file's), MEMORY. */
sluice_status slc_shard_decode_ranges(const unsigned char *head, uint64_t file_bytes, slc_shard *shard);
