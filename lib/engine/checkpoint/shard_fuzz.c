/* Random heads of shard files, half of them with a checksum that is right: refused with a line, or read; what was read
 * ends where the file ends, and is the same when encoded. */
#include "lib/base/hash/crc32c.h"
#include "lib/engine/checkpoint/shard.h"

#include <sluice/status.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CRC_AT = 60, RANGES = 3 };

/* A good head, over which the input's bytes are added; more of them lengthen it. */
static unsigned char *make_head(const uint8_t *data, size_t size, size_t *bytes)
{
    slc_shard_range ranges[RANGES] = {{0, 0, 0, 5, 1}, {0, 1, 0, 5, 2}, {7, 0, 32, 1, 3}};
    slc_shard shard = {.rank = 1, .world = 4, .step = 9, .range_count = RANGES, .ranges = ranges};
    size_t good = slc_shard_head_bytes(RANGES);
    *bytes = size > good ? size : good;
    unsigned char *head = calloc(1, *bytes);
    if (!head) return NULL;
    slc_shard_encode(&shard, head);
    for (size_t i = 0; i < size; i++) head[i] ^= data[i];
    return head;
}

static void mend(unsigned char *head, uint64_t bytes)
{
    memset(head + CRC_AT, 0, 4);
    uint32_t crc = slc_crc32c(0, head, bytes);
    memcpy(head + CRC_AT, &crc, 4);
}

static void check(unsigned char *head, size_t bytes, uint64_t file_bytes, int mended)
{
    slc_shard shard;
    if (slc_shard_decode_header(head, file_bytes, &shard)) {
        if (!*sluice_last_error()) abort();
        return;
    }
    uint64_t head_bytes = slc_shard_head_bytes(shard.range_count);
    if (head_bytes > file_bytes) abort();
    if (head_bytes > bytes) return; /* a file that long was not made */
    if (mended) {
        mend(head, head_bytes);
        if (slc_shard_decode_header(head, file_bytes, &shard)) abort();
    }
    if (slc_shard_decode_ranges(head, file_bytes, &shard)) {
        if (shard.ranges || !*sluice_last_error()) abort();
        return;
    }
    uint64_t end = head_bytes;
    for (uint64_t i = 0; i < shard.range_count; i++) end += 4 * shard.ranges[i].count;
    if (end != file_bytes) abort();
    free(shard.ranges);
}

/* First byte: whether to mend the checksum; two bytes: the file's length, around the right one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    size_t bytes;
    unsigned char *head = make_head(data + 3, size - 3, &bytes);
    uint64_t file_bytes = slc_shard_head_bytes(RANGES) + 44 + (uint64_t)(int64_t)(int8_t)data[1] * data[2];
    if (head) check(head, bytes, file_bytes, data[0] & 1);
    free(head);
    return 0;
}
