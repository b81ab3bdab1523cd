/* tests/checkpoint/checkpoint_test.c covers this file. */
#include "lib/engine/checkpoint/shard.h"

#include "lib/base/hash/crc32c.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie in memory");

static const char magic[8] = "SluiceCk";

/* These structs lie in the file as they are: all fields are aligned. */
typedef struct {
    char magic[8];
    uint32_t version, rank, world, zero;
    uint64_t step, range_count;
    uint64_t more_zeros[2];
    uint32_t last_zero, crc32c; /* of header (with 0 here) and table */
} header;
_Static_assert(sizeof(header) == SLC_SHARD_HEADER_BYTES, "header");

typedef struct {
    uint32_t param, array;
    uint64_t first, count;
    uint32_t crc32c, zero;
} row;
_Static_assert(sizeof(row) == SLC_SHARD_RANGE_BYTES, "row of the table");

static uint32_t checksum(const unsigned char *head, uint64_t bytes)
{
    header h;
    memcpy(&h, head, sizeof h);
    h.crc32c = 0;
    uint32_t crc = slc_crc32c(0, &h, sizeof h);
    return slc_crc32c(crc, head + sizeof h, bytes - sizeof h);
}

void slc_shard_encode(slc_shard *shard, unsigned char *head)
{
    header h = {.version = SLC_SHARD_VERSION,
                .rank = shard->rank,
                .world = shard->world,
                .step = shard->step,
                .range_count = shard->range_count};
    memcpy(h.magic, magic, sizeof h.magic);
    memcpy(head, &h, sizeof h);
    for (uint64_t i = 0; i < shard->range_count; i++) {
        const slc_shard_range *r = &shard->ranges[i];
        row out = {r->param, r->array, r->first, r->count, r->crc32c, 0};
        memcpy(head + sizeof h + i * sizeof out, &out, sizeof out);
    }
    h.crc32c = shard->crc32c = checksum(head, slc_shard_head_bytes(shard->range_count));
    memcpy(head, &h, sizeof h);
}

sluice_status slc_shard_decode_header(const unsigned char *head, uint64_t file_bytes, slc_shard *out)
{
    header h;
    if (file_bytes < sizeof h)
        return slc_error(SLUICE_ERR_FORMAT, "truncated: it has %llu bytes", (unsigned long long)file_bytes);
    memcpy(&h, head, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic)) return slc_error(SLUICE_ERR_FORMAT, "not a part of a checkpoint");
    if (h.version != SLC_SHARD_VERSION)
        return slc_error(SLUICE_ERR_FORMAT, "version %u; this program reads %d", h.version, SLC_SHARD_VERSION);
    if (h.range_count > (file_bytes - sizeof h) / sizeof(row))
        return slc_error(SLUICE_ERR_FORMAT, "truncated: a table of %llu ranges does not fit %llu bytes",
                         (unsigned long long)h.range_count, (unsigned long long)file_bytes);
    *out =
        (slc_shard){.rank = h.rank, .world = h.world, .step = h.step, .range_count = h.range_count, .crc32c = h.crc32c};
    return SLUICE_OK;
}

/* Checks the length of a shard's file: its table says where it must end. */
static sluice_status check_length(const slc_shard *shard, uint64_t file_bytes)
{
    uint64_t bytes = slc_shard_head_bytes(shard->range_count);
    for (uint64_t i = 0; i < shard->range_count; i++) {
        uint64_t count = shard->ranges[i].count;
        if (count > (file_bytes - bytes) / 4)
            return slc_error(SLUICE_ERR_FORMAT, "truncated: range %llu of %llu ends past its %llu bytes",
                             (unsigned long long)i, (unsigned long long)shard->range_count,
                             (unsigned long long)file_bytes);
        bytes += 4 * count;
    }
    if (bytes != file_bytes)
        return slc_error(SLUICE_ERR_FORMAT, "it has %llu bytes where its table says %llu",
                         (unsigned long long)file_bytes, (unsigned long long)bytes);
    return SLUICE_OK;
}

sluice_status slc_shard_decode_ranges(const unsigned char *head, uint64_t file_bytes, slc_shard *shard)
{
    if (checksum(head, slc_shard_head_bytes(shard->range_count)) != shard->crc32c)
        return slc_error(SLUICE_ERR_FORMAT, "damaged: its header and table do not have their checksum");
    shard->ranges = calloc(shard->range_count + 1, sizeof *shard->ranges);
    if (!shard->ranges)
        return slc_error(SLUICE_ERR_MEMORY, "table of %llu ranges", (unsigned long long)shard->range_count);
    for (uint64_t i = 0; i < shard->range_count; i++) {
        row in;
        memcpy(&in, head + SLC_SHARD_HEADER_BYTES + i * sizeof in, sizeof in);
        shard->ranges[i] = (slc_shard_range){in.param, in.array, in.first, in.count, in.crc32c};
    }
    sluice_status status = check_length(shard, file_bytes);
    if (!status) return SLUICE_OK;
    free(shard->ranges);
    shard->ranges = NULL;
    return status;
}
