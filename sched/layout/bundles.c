/* Packing with fewer pieces: buffers that live at exactly the same times (the activations of a layer, all resident
 * ones) lie next to each other as a bundle, so the packer has to place them only once.
 * make_plan_test.c covers this file. */
#include "sched/layout/parts.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    slc_pack_buffer **sorted; /* the buffers; those of a bundle are neighbours */
    slc_pack_buffer *bundles;
    uint32_t *first, *last; /* [bundles] indices in `sorted` */
    slc_pack_part *parts;
    uint32_t count; /* number of bundles */
} bundling;

static bool is_whole(const slc_pack_buffer *buffer)
{
    for (uint32_t i = 0; i < buffer->part_count; i++)
        if (buffer->parts[i].first_byte || buffer->parts[i].end_byte != buffer->bytes) return false;
    return buffer->part_count;
}

static int compare_lives(const slc_pack_buffer *a, const slc_pack_buffer *b)
{
    if (a->part_count != b->part_count) return a->part_count < b->part_count ? -1 : 1;
    for (uint32_t i = 0; i < a->part_count; i++) {
        const slc_pack_part *x = &a->parts[i], *y = &b->parts[i];
        if (x->start != y->start) return x->start < y->start ? -1 : 1;
        if (x->end != y->end) return x->end < y->end ? -1 : 1;
    }
    return (int)is_whole(a) - (int)is_whole(b);
}

static int by_life(const void *a, const void *b)
{
    const slc_pack_buffer *x = *(slc_pack_buffer *const *)a, *y = *(slc_pack_buffer *const *)b;
    int order = compare_lives(x, y);
    return order ? order : (x > y) - (x < y);
}

static void group(bundling *g, slc_pack_buffer *buffers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) g->sorted[i] = &buffers[i];
    qsort(g->sorted, count, sizeof *g->sorted, by_life);
    for (uint32_t i = 0; i < count; i++) {
        bool joins = i && is_whole(g->sorted[i]) && !compare_lives(g->sorted[i], g->sorted[i - 1]);
        if (!joins) g->first[g->count++] = i;
        g->last[g->count - 1] = i;
    }
}

/* A bundle lives as long as its first buffer, with all of its bytes. */
static void describe(bundling *g)
{
    slc_pack_part *parts = g->parts;
    for (uint32_t b = 0; b < g->count; b++) {
        const slc_pack_buffer *first = g->sorted[g->first[b]];
        slc_pack_buffer *bundle = &g->bundles[b];
        *bundle = (slc_pack_buffer){.parts = parts, .part_count = first->part_count};
        for (uint32_t i = g->first[b]; i <= g->last[b]; i++)
            bundle->bytes = slc_aligned(bundle->bytes) + g->sorted[i]->bytes;
        for (uint32_t i = 0; i < first->part_count; i++) {
            *parts = first->parts[i];
            if (is_whole(first)) parts->end_byte = bundle->bytes;
            parts++;
        }
    }
}

static void spread_offsets(const bundling *g)
{
    for (uint32_t b = 0; b < g->count; b++) {
        uint64_t offset = g->bundles[b].offset;
        for (uint32_t i = g->first[b]; i <= g->last[b]; i++) {
            g->sorted[i]->offset = offset;
            offset += slc_aligned(g->sorted[i]->bytes);
        }
    }
}

/* One try costs the square of the number of bundles, so there are fewer tries with many bundles. */
static uint32_t affordable(uint32_t tries, uint32_t bundles)
{
    double share = bundles > 80 ? 80.0 / bundles : 1;
    return (uint32_t)(tries * share * share);
}

sluice_status slc_pack_bundled(slc_pack_buffer *buffers, uint32_t count, uint64_t target, uint32_t tries,
                               uint64_t *peak, uint64_t *looked_at)
{
    size_t parts = 1, room = (size_t)count + 1;
    for (uint32_t i = 0; i < count; i++) parts += buffers[i].part_count;
    bundling g = {.sorted = malloc(room * sizeof *g.sorted),
                  .bundles = malloc(room * sizeof *g.bundles),
                  .first = malloc(room * sizeof *g.first),
                  .last = malloc(room * sizeof *g.last),
                  .parts = malloc(parts * sizeof *g.parts)};
    sluice_status status;
    if (g.sorted && g.bundles && g.first && g.last && g.parts) {
        group(&g, buffers, count);
        describe(&g);
        status = slc_pack_within(g.bundles, g.count, target, affordable(tries, g.count), peak, looked_at);
        if (!status) spread_offsets(&g);
    } else
        status = slc_error(SLUICE_ERR_MEMORY, "no memory for packing %u buffers", count);
    free(g.parts);
    free(g.last);
    free(g.first);
    free(g.bundles);
    free(g.sorted);
    return status;
}
