/* The bound that no packing can beat, from the live bytes of every buffer over time. pack_test.c covers this file. */
#include "lib/memory/lower_bound.h"

#include "lib/memory/pack_profile.h"

#include <stdlib.h>

typedef struct {
    uint32_t time;
    int64_t change; /* change of the live bytes from this time on */
} change_at;

static int compare_changes(const void *a, const void *b)
{
    const change_at *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

static uint64_t highest_level(change_at *changes, size_t count)
{
    qsort(changes, count, sizeof *changes, compare_changes);
    int64_t level = 0, highest = 0;
    for (size_t i = 0; i < count; i++) {
        level += changes[i].change;
        int last_of_its_time = i + 1 == count || changes[i + 1].time != changes[i].time;
        if (last_of_its_time && level > highest) highest = level;
    }
    return (uint64_t)highest;
}

uint64_t slc_pack_lower_bound(const slc_pack_buffer *buffers, size_t count)
{
    size_t total = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        total += buffers[i].part_count;
        if (buffers[i].part_count > most) most = buffers[i].part_count;
    }
    uint64_t bound = 0;
    slc_pack_part *parts = malloc((most + 1) * sizeof *parts);
    uint32_t *times = malloc((2 * most + 1) * sizeof *times);
    slc_pack_step *steps = malloc((2 * most + 1) * sizeof *steps);
    change_at *changes = malloc((4 * total + 1) * sizeof *changes);
    if (!parts || !times || !steps || !changes) goto free_all;

    size_t change_count = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t step_count = slc_pack_profile(&buffers[i], parts, times, steps);
        for (uint32_t k = 0; k < step_count; k++) {
            changes[change_count++] = (change_at){steps[k].start, (int64_t)steps[k].live_bytes};
            changes[change_count++] = (change_at){steps[k].end, -(int64_t)steps[k].live_bytes};
        }
    }
    bound = highest_level(changes, change_count);

free_all:
    free(changes);
    free(steps);
    free(times);
    free(parts);
    return bound;
}
