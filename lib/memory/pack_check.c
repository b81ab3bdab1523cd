/* The independent check of a packing: sorts all rectangles by address and looks at every pair that shares an
 * address. */
#include "lib/base/status.h"
#include "lib/memory/pack.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct {
    uint64_t from, to; /* addresses [from, to) */
    uint32_t start, end;
    size_t owner;
} rectangle;

static int by_address(const void *a, const void *b)
{
    const rectangle *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static sluice_status collect(const slc_pack_buffer *buffers, size_t count, rectangle *out, size_t *out_count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const slc_pack_buffer *buffer = &buffers[i];
        if (buffer->offset % SLC_PACK_ALIGNMENT)
            return slc_error(SLUICE_ERR_FORMAT, "packing: buffer %zu at %" PRIu64 ": not a multiple of %d", i,
                             buffer->offset, SLC_PACK_ALIGNMENT);
        for (uint32_t k = 0; k < buffer->part_count; k++) {
            const slc_pack_part *part = &buffer->parts[k];
            if (part->end_byte > buffer->bytes)
                return slc_error(SLUICE_ERR_FORMAT, "packing: buffer %zu: part %u ends at byte %" PRIu64 " of %" PRIu64,
                                 i, k, part->end_byte, buffer->bytes);
            if (part->first_byte >= part->end_byte || part->start >= part->end) continue;
            out[used++] = (rectangle){buffer->offset + part->first_byte, buffer->offset + part->end_byte, part->start,
                                      part->end, i};
        }
    }
    *out_count = used;
    return SLUICE_OK;
}

sluice_status slc_pack_check(const slc_pack_buffer *buffers, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) total += buffers[i].part_count;
    rectangle *all = malloc((total + 1) * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "checking a packing of %zu buffers", count);

    sluice_status status = collect(buffers, count, all, &total);
    if (status) goto free_all;
    qsort(all, total, sizeof *all, by_address);
    for (size_t i = 0; i < total; i++) {
        for (size_t k = i + 1; k < total && all[k].from < all[i].to; k++) {
            const rectangle *a = &all[i], *b = &all[k];
            if (a->owner == b->owner || a->end <= b->start || b->end <= a->start) continue;
            status = slc_error(SLUICE_ERR_FORMAT,
                               "packing: buffers %zu and %zu overlap at address %" PRIu64 " from time %u on", a->owner,
                               b->owner, b->from, a->start > b->start ? a->start : b->start);
            goto free_all;
        }
    }

free_all:
    free(all);
    return status;
}
