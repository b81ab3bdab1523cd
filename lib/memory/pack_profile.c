/* The live bytes of one buffer over time. Nothing changes between two neighbouring times at which some part begins or
 * ends, so one union for each such interval is enough. pack_test.c covers this file. */
#include "lib/memory/pack_profile.h"

#include <stdlib.h>

static int compare_times(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int compare_first_byte(const void *a, const void *b)
{
    const slc_pack_part *x = a, *y = b;
    return (x->first_byte > y->first_byte) - (x->first_byte < y->first_byte);
}

static uint64_t live_bytes(const slc_pack_part *sorted, uint32_t count, uint32_t time)
{
    uint64_t sum = 0, covered = 0; /* everything below `covered` is in the sum or does not live */
    for (uint32_t i = 0; i < count; i++) {
        const slc_pack_part *part = &sorted[i];
        if (time < part->start || time >= part->end || part->end_byte <= covered) continue;
        sum += part->end_byte - (part->first_byte > covered ? part->first_byte : covered);
        covered = part->end_byte;
    }
    return sum;
}

uint32_t slc_pack_profile(const slc_pack_buffer *buffer, slc_pack_part *scratch_parts, uint32_t *scratch_times,
                          slc_pack_step *steps)
{
    uint32_t count = 0, step_count = 0;
    for (uint32_t i = 0; i < buffer->part_count; i++) {
        const slc_pack_part *part = &buffer->parts[i];
        if (part->start >= part->end || part->first_byte >= part->end_byte) continue;
        scratch_times[2 * count] = part->start;
        scratch_times[2 * count + 1] = part->end;
        scratch_parts[count++] = *part;
    }
    qsort(scratch_parts, count, sizeof *scratch_parts, compare_first_byte);
    qsort(scratch_times, 2 * count, sizeof *scratch_times, compare_times);
    for (uint32_t i = 0; i + 1 < 2 * count; i++) {
        uint32_t start = scratch_times[i], end = scratch_times[i + 1];
        if (start == end) continue;
        uint64_t live = live_bytes(scratch_parts, count, start);
        if (!live) continue;
        slc_pack_step *last = step_count ? &steps[step_count - 1] : NULL;
        if (last && last->end == start && last->live_bytes == live)
            last->end = end;
        else
            steps[step_count++] = (slc_pack_step){start, end, live};
    }
    return step_count;
}
