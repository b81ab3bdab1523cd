/* The packer. First the buffers are stacked from the bottom up (stack.c), which alone packs most problems tightly.
 * If that finds nothing, the packer places buffers one after another, each in the gap that fits it best. The buffers
 * already placed forbid intervals of offsets: each pair of parts that share a time forbids the offsets at which their
 * bytes would overlap. The order decides how good the result is, so several orders are tried; then those buffers that
 * make the peak go first. */
#include "lib/memory/pack.h"

#include "lib/base/bisect.h"
#include "lib/base/status.h"
#include "lib/memory/lower_bound.h"
#include "lib/memory/pack_profile.h"
#include "lib/memory/stack.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    ORDERS = 5,
    BRIEF_TRIES = 16, /* a caller that allows at most so many is in a hurry: only stacking must be good */
    FEW_ATTEMPTS = 2, /* instead of 2 * ORDERS, if stacking has tried and only the size is of interest */
    REPAIR_ROUNDS = 16,
    PLACEMENTS_A_TRY = 10, /* placements of stacking that take as long as one try */
    NARROWING_ROUNDS = 8,
};
static const uint64_t LARGEST = UINT64_C(1) << 56; /* most bytes of all buffers: keeps sums inside 64 bits */
/* No further order is begun once this many pairs of parts have been looked at. */
static const uint64_t WORK_LIMIT = UINT64_C(120000000);

/* A buffer as the packer sees it. Bytes and times are hulls of its parts. */
typedef struct {
    const slc_pack_part *parts;
    uint32_t part_count;
    uint32_t start, end;
    uint32_t whole_start, whole_end; /* all bytes of [first, last) live during these times; empty: never */
    int64_t first, last;             /* live bytes; first == last: none ever lives */
    double area;                     /* bytes x time */
} item;

typedef struct {
    int64_t low, high; /* the offsets strictly between them are forbidden */
} interval;

typedef struct {
    interval *items;
    size_t count, room;
} interval_list;

/* A placed buffer. Its times lie here, and not with the item alone, because most of the packer's time goes into finding
 * which of the placed ones share a time with the next, and few do. */
typedef struct {
    uint32_t start, end;
    uint32_t index;
} placed_item;

typedef struct {
    const item *items;
    size_t count;
    uint32_t *order;
    placed_item *placed; /* ascending by lowest live address */
    size_t placed_count;
    int64_t *offset;
    interval_list whole; /* ascending, because `placed` is ascending */
    interval_list parts;
    uint64_t work;
    bool best_fit; /* else the lowest gap is taken */
} packing;

/* ---- Forbidden offsets ---- */

static bool push(interval_list *list, int64_t low, int64_t high)
{
    interval *last = list->count ? &list->items[list->count - 1] : NULL;
    if (last && low < last->high && last->low < high) {
        if (low < last->low) last->low = low;
        if (high > last->high) last->high = high;
        return true;
    }
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 256;
        interval *grown = realloc(list->items, room * sizeof *grown);
        if (!grown) return false;
        list->items = grown;
        list->room = room;
    }
    list->items[list->count++] = (interval){low, high};
    return true;
}

static bool share_time(uint32_t start_a, uint32_t end_a, uint32_t start_b, uint32_t end_b)
{
    return start_a < end_b && start_b < end_a;
}

static bool push_part_pairs(packing *p, const item *placed, int64_t at, const item *next)
{
    p->work += placed->part_count;
    for (uint32_t i = 0; i < placed->part_count; i++) {
        const slc_pack_part *a = &placed->parts[i];
        if (a->first_byte >= a->end_byte || !share_time(a->start, a->end, next->start, next->end)) continue;
        for (uint32_t k = 0; k < next->part_count; k++) {
            const slc_pack_part *b = &next->parts[k];
            if (b->first_byte >= b->end_byte || !share_time(a->start, a->end, b->start, b->end)) continue;
            if (!push(&p->parts, at + (int64_t)a->first_byte - (int64_t)b->end_byte,
                      at + (int64_t)a->end_byte - (int64_t)b->first_byte))
                return false;
        }
        p->work += next->part_count;
    }
    return true;
}

static int compare_intervals(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* Fills both lists with the offsets that the placed buffers forbid to `next`, each list ascending by its low end. */
static bool collect_forbidden(packing *p, const item *next)
{
    p->whole.count = p->parts.count = 0;
    p->work += p->placed_count;
    for (size_t i = 0; i < p->placed_count; i++) {
        if (!share_time(p->placed[i].start, p->placed[i].end, next->start, next->end)) continue;
        const item *placed = &p->items[p->placed[i].index];
        int64_t at = p->offset[p->placed[i].index];
        bool whole = share_time(placed->whole_start, placed->whole_end, next->whole_start, next->whole_end);
        if (whole ? !push(&p->whole, at + placed->first - next->last, at + placed->last - next->first)
                  : !push_part_pairs(p, placed, at, next))
            return false;
    }
    if (p->parts.count > 1) qsort(p->parts.items, p->parts.count, sizeof *p->parts.items, compare_intervals);
    return true;
}

/* ---- Placing ---- */

static int64_t align_up(int64_t value)
{
    return (value + SLC_PACK_ALIGNMENT - 1) / SLC_PACK_ALIGNMENT * SLC_PACK_ALIGNMENT;
}

/* Walks upwards through the gaps between the forbidden intervals. The last gap has no end. */
static int64_t choose_offset(const packing *p)
{
    size_t i = 0, k = 0;
    int64_t cursor = 0, best = -1, best_slack = INT64_MAX;
    while (i < p->whole.count || k < p->parts.count) {
        bool from_whole = k == p->parts.count || (i < p->whole.count && p->whole.items[i].low <= p->parts.items[k].low);
        const interval *next = from_whole ? &p->whole.items[i++] : &p->parts.items[k++];
        if (cursor <= next->low) {
            if (!p->best_fit) return cursor;
            if (next->low - cursor < best_slack) {
                best_slack = next->low - cursor;
                best = cursor;
            }
        }
        if (next->high > cursor) cursor = align_up(next->high);
    }
    return best < 0 ? cursor : best;
}

static int64_t lowest_address(const packing *p, uint32_t index)
{
    return p->offset[index] + p->items[index].first;
}

static void insert_placed(packing *p, uint32_t index)
{
    const int64_t address = lowest_address(p, index);
    SLC_BISECT(size_t, low, 0, p->placed_count, lowest_address(p, p->placed[low].index) <= address);
    memmove(&p->placed[low + 1], &p->placed[low], (p->placed_count - low) * sizeof *p->placed);
    p->placed[low] = (placed_item){p->items[index].start, p->items[index].end, index};
    p->placed_count++;
}

/* Places every buffer in `order`. Returns the peak, or -1 if memory runs out. */
static int64_t place_all(packing *p)
{
    int64_t peak = 0;
    p->placed_count = 0;
    for (size_t i = 0; i < p->count; i++) {
        uint32_t index = p->order[i];
        const item *next = &p->items[index];
        p->offset[index] = 0;
        if (next->first == next->last) continue;
        if (!collect_forbidden(p, next)) return -1;
        p->offset[index] = choose_offset(p);
        insert_placed(p, index);
        if (p->offset[index] + next->last > peak) peak = p->offset[index] + next->last;
    }
    return peak;
}

/* ---- Orders ---- */

typedef struct {
    double key, bytes;
    uint32_t index;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static double order_key(const item *it, int order)
{
    switch (order) {
    case 0: return it->area;
    case 1: return (double)(it->last - it->first);
    case 2: return (double)it->end - (double)it->start;
    case 3: return -(double)it->start;
    default: return (double)it->end;
    }
}

static void sort_by(packing *p, int order, ranked *scratch)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const item *it = &p->items[i];
        scratch[i] = (ranked){order_key(it, order), (double)(it->last - it->first), i};
    }
    qsort(scratch, p->count, sizeof *scratch, compare_ranked);
    for (uint32_t i = 0; i < p->count; i++) p->order[i] = scratch[i].index;
}

/* The best packing so far. Its order is kept, so that the search can go on from it. */
typedef struct {
    int64_t peak;
    int64_t *offset;
    uint32_t *order;
    bool best_fit;
} result;

static bool keep_if_better(const packing *p, int64_t peak, result *best)
{
    if (best->peak >= 0 && peak >= best->peak) return false;
    best->peak = peak;
    best->best_fit = p->best_fit;
    memcpy(best->offset, p->offset, p->count * sizeof *p->offset);
    memcpy(best->order, p->order, p->count * sizeof *p->order);
    return true;
}

/* Moves the buffers that end at the peak of the current offsets to the front; the others follow in their old order. */
static void peak_first(packing *p, int64_t peak, uint32_t *scratch)
{
    size_t used = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < p->count; i++) {
            uint32_t index = p->order[i];
            bool makes_peak = p->offset[index] + p->items[index].last == peak;
            if (makes_peak == (pass == 0)) scratch[used++] = index;
        }
    }
    memcpy(p->order, scratch, p->count * sizeof *p->order);
}

/* SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): draws the same numbers for the same input everywhere. */
static uint64_t draw(uint64_t *state, uint64_t below)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

/* Moves one buffer to an earlier place in the order (the first one to any place): mostly one that reaches above the
 * bound in the current offsets, else any one. */
static void advance_one(packing *p, int64_t peak, int64_t bound, uint64_t *state)
{
    size_t chosen = draw(state, p->count), seen = 0;
    bool high = draw(state, 4) > 0;
    for (size_t i = 0; high && i < p->count; i++) {
        const item *it = &p->items[p->order[i]];
        bool reaches = it->first != it->last && p->offset[p->order[i]] + it->last > bound;
        if (reaches && p->offset[p->order[i]] + it->last <= peak && draw(state, ++seen) == 0) chosen = i;
    }
    size_t to = chosen ? draw(state, chosen) : draw(state, p->count);
    uint32_t index = p->order[chosen];
    if (to < chosen)
        memmove(p->order + to + 1, p->order + to, (chosen - to) * sizeof *p->order);
    else
        memmove(p->order + chosen, p->order + chosen + 1, (to - chosen) * sizeof *p->order);
    p->order[to] = index;
}

/* Climbs by random changes of the order, beginning with the best one. */
static sluice_status climb(packing *p, int64_t bound, uint32_t tries, result *best)
{
    uint64_t state = p->count;
    for (uint32_t t = 0; t < tries && best->peak > bound; t++) {
        memcpy(p->order, best->order, p->count * sizeof *p->order);
        memcpy(p->offset, best->offset, p->count * sizeof *p->offset);
        p->best_fit = draw(&state, 4) ? best->best_fit : !best->best_fit;
        for (uint64_t moves = 1 + draw(&state, 2); moves > 0; moves--) advance_one(p, best->peak, bound, &state);
        int64_t peak = place_all(p);
        if (peak < 0) return slc_error(SLUICE_ERR_MEMORY, "packing %zu buffers", p->count);
        if (peak == best->peak) best->peak++; /* keeps another order that is as good, and climbs on from it */
        keep_if_better(p, peak, best);
    }
    return SLUICE_OK;
}

static sluice_status search_orders(packing *p, int64_t bound, int attempts, int rounds, ranked *scratch,
                                   uint32_t *scratch_order, result *best)
{
    for (int attempt = 0; attempt < attempts; attempt++) {
        if (best->peak >= 0 && (best->peak <= bound || p->work > WORK_LIMIT)) return SLUICE_OK;
        sort_by(p, attempt / 2, scratch);
        p->best_fit = attempt % 2 == 0;
        int64_t peak = place_all(p);
        if (peak < 0) return slc_error(SLUICE_ERR_MEMORY, "packing %zu buffers", p->count);
        keep_if_better(p, peak, best);
    }
    memcpy(p->order, best->order, p->count * sizeof *p->order);
    memcpy(p->offset, best->offset, p->count * sizeof *p->offset);
    p->best_fit = best->best_fit;
    int64_t peak = best->peak;
    for (int round = 0; round < rounds && best->peak > bound && p->work <= WORK_LIMIT; round++) {
        peak_first(p, peak, scratch_order);
        peak = place_all(p);
        if (peak < 0) return slc_error(SLUICE_ERR_MEMORY, "packing %zu buffers", p->count);
        keep_if_better(p, peak, best);
    }
    return SLUICE_OK;
}

/* ---- From buffers to items ---- */

static sluice_status check_buffer(const slc_pack_buffer *buffer, size_t index, uint64_t *total)
{
    if (buffer->bytes > LARGEST || (*total += buffer->bytes) > LARGEST)
        return slc_error(SLUICE_ERR_ARGUMENT, "packing: buffer %zu of %" PRIu64 " bytes: more than can be packed",
                         index, buffer->bytes);
    for (uint32_t i = 0; i < buffer->part_count; i++) {
        const slc_pack_part *part = &buffer->parts[i];
        if (part->first_byte > part->end_byte || part->end_byte > buffer->bytes || part->start > part->end)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "packing: buffer %zu: part %u, bytes [%" PRIu64 ", %" PRIu64 ") at times [%u, %u), does "
                             "not lie in its %" PRIu64 " bytes",
                             index, i, part->first_byte, part->end_byte, part->start, part->end, buffer->bytes);
    }
    return SLUICE_OK;
}

/* Finds the longest time for which all of the item's bytes live. */
static void find_whole(item *it, const slc_pack_step *steps, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].live_bytes != (uint64_t)(it->last - it->first)) continue;
        if (steps[i].end - steps[i].start <= it->whole_end - it->whole_start) continue;
        it->whole_start = steps[i].start;
        it->whole_end = steps[i].end;
    }
}

static sluice_status describe(const slc_pack_buffer *buffer, item *out)
{
    *out = (item){.parts = buffer->parts, .part_count = buffer->part_count, .start = UINT32_MAX};
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < buffer->part_count; i++) {
        const slc_pack_part *part = &buffer->parts[i];
        if (part->start == part->end || part->first_byte == part->end_byte) continue;
        if (part->first_byte < first) first = part->first_byte;
        if (part->end_byte > last) last = part->end_byte;
        if (part->start < out->start) out->start = part->start;
        if (part->end > out->end) out->end = part->end;
    }
    if (!last) return SLUICE_OK;
    out->first = (int64_t)first;
    out->last = (int64_t)last;

    size_t room = buffer->part_count;
    slc_pack_part *parts = malloc(room * sizeof *parts);
    uint32_t *times = malloc(2 * room * sizeof *times);
    slc_pack_step *steps = malloc(2 * room * sizeof *steps);
    sluice_status status = SLUICE_OK;
    if (parts && times && steps) {
        uint32_t count = slc_pack_profile(buffer, parts, times, steps);
        find_whole(out, steps, count);
        for (uint32_t i = 0; i < count; i++)
            out->area += (double)steps[i].live_bytes * (double)(steps[i].end - steps[i].start);
    } else
        status = slc_error(SLUICE_ERR_MEMORY, "packing");
    free(steps);
    free(times);
    free(parts);
    return status;
}

static sluice_status describe_all(const slc_pack_buffer *buffers, size_t count, item *items)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        sluice_status status = check_buffer(&buffers[i], i, &total);
        if (!status) status = describe(&buffers[i], &items[i]);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* ---- Stacking ---- */

/* Stacks the buffers below `target`; true: it did, and the result is the best one now. */
static bool stack_below(slc_stack *stack, int64_t target, uint64_t placements, result *best)
{
    bool found;
    int64_t peak;
    slc_stack_search(stack, (uint64_t)target, placements, best->offset, &peak, &found);
    if (found) best->peak = peak;
    return found;
}

/* Halves the distance between the best peak and what cannot be reached, with as much work for all rounds together as
 * `tries` stand for. */
static void narrow(slc_stack *stack, int64_t bound, uint32_t tries, result *best)
{
    uint64_t placements = (uint64_t)PLACEMENTS_A_TRY * tries / NARROWING_ROUNDS;
    for (int round = 0; round < NARROWING_ROUNDS && best->peak - bound > best->peak / 2048; round++) {
        int64_t middle = bound + (best->peak - bound) / 2;
        if (!stack_below(stack, middle, placements, best)) bound = middle;
    }
}

/* Packs until the peak is at most `bound`, the cheapest way first. A bound that is known to be out of reach is raised
 * to what may be reached. A peak that is found with no tries is found again with many tries and that peak as the bound;
 * the smallest budget relies on it. */
static sluice_status pack_below(packing *p, slc_stack *stack, int64_t bound, uint32_t tries, ranked *scratch,
                                uint32_t *scratch_order, result *best)
{
    bool exact = false;
    int64_t least = stack ? (int64_t)slc_stack_lower_bound(stack, &exact) : 0;
    if (exact && least > bound) bound = least;
    bool can = stack && least <= bound, briefly = can && tries && tries <= BRIEF_TRIES;
    if (can && stack_below(stack, bound, (uint64_t)PLACEMENTS_A_TRY * tries, best)) return SLUICE_OK;
    sluice_status status = search_orders(p, bound, briefly ? FEW_ATTEMPTS : 2 * ORDERS, briefly ? 0 : REPAIR_ROUNDS,
                                         scratch, scratch_order, best);
    if (status || best->peak <= bound) return status;
    if (!can) return climb(p, bound, tries, best);
    if (tries) narrow(stack, bound, tries, best);
    return SLUICE_OK;
}

sluice_status slc_pack_within(slc_pack_buffer *buffers, size_t count, uint64_t target, uint32_t tries, uint64_t *peak,
                              uint64_t *looked_at)
{
    if (count >= UINT32_MAX) return slc_error(SLUICE_ERR_ARGUMENT, "packing: %zu buffers: too many", count);
    item *items = calloc(count + 1, sizeof *items);
    ranked *scratch = calloc(count + 1, sizeof *scratch);
    uint32_t *orders = calloc(3 * count + 1, sizeof *orders);
    placed_item *placed = calloc(count + 1, sizeof *placed);
    int64_t *offsets = calloc(2 * count + 1, sizeof *offsets);
    packing p = {.items = items, .count = count, .order = orders, .placed = placed};
    slc_stack *stack = NULL;
    sluice_status status;
    if (!items || !scratch || !orders || !placed || !offsets) {
        status = slc_error(SLUICE_ERR_MEMORY, "packing %zu buffers", count);
        goto free_all;
    }
    p.offset = offsets;
    result best = {.peak = -1, .offset = offsets + count, .order = orders + count};

    status = describe_all(buffers, count, items);
    uint64_t enough = slc_pack_lower_bound(buffers, count);
    if (target > enough) enough = target < LARGEST ? target : LARGEST;
    if (!status) status = slc_stack_create(buffers, count, &stack);
    if (!status) status = pack_below(&p, stack, (int64_t)enough, tries, scratch, orders + 2 * count, &best);
    if (status) goto free_all;
    for (size_t i = 0; i < count; i++) buffers[i].offset = (uint64_t)best.offset[i];
    *peak = (uint64_t)best.peak;

free_all:
    if (looked_at) *looked_at = p.work + (stack ? slc_stack_looked_at(stack) : 0);
    slc_stack_destroy(stack);
    free(p.whole.items);
    free(p.parts.items);
    free(offsets);
    free(placed);
    free(orders);
    free(scratch);
    free(items);
    return status;
}

/* ---- One buffer ---- */

/* A buffer of which only parts and hull are known. */
static item hull_of(const slc_pack_buffer *buffer)
{
    item hull = {.parts = buffer->parts, .part_count = buffer->part_count, .start = UINT32_MAX};
    for (uint32_t i = 0; i < buffer->part_count; i++) {
        const slc_pack_part *part = &buffer->parts[i];
        if (part->start < hull.start) hull.start = part->start;
        if (part->end > hull.end) hull.end = part->end;
    }
    return hull;
}

sluice_status slc_pack_one(slc_pack_buffer *buffers, size_t count, const bool *absent, size_t index,
                           uint64_t *looked_at)
{
    packing p = {.best_fit = true};
    const item next = hull_of(&buffers[index]);
    bool enough = true;
    for (size_t i = 0; enough && i < count; i++) {
        if (i == index || absent[i]) continue;
        const item placed = hull_of(&buffers[i]);
        p.work += placed.part_count;
        if (share_time(placed.start, placed.end, next.start, next.end))
            enough = push_part_pairs(&p, &placed, (int64_t)buffers[i].offset, &next);
    }
    if (p.parts.count > 1) qsort(p.parts.items, p.parts.count, sizeof *p.parts.items, compare_intervals);
    if (enough) buffers[index].offset = (uint64_t)choose_offset(&p);
    *looked_at += p.work;
    free(p.parts.items);
    return enough ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "packing one of %zu buffers", count);
}

bool slc_pack_clash(const slc_pack_buffer *a, const slc_pack_buffer *b)
{
    for (uint32_t i = 0; i < a->part_count; i++)
        for (uint32_t k = 0; k < b->part_count; k++) {
            const slc_pack_part *x = &a->parts[i], *y = &b->parts[k];
            if (x->start < y->end && y->start < x->end && a->offset + x->first_byte < b->offset + y->end_byte &&
                b->offset + y->first_byte < a->offset + x->end_byte)
                return true;
        }
    return false;
}
