/* Stacking from the bottom up. Only those moments count at which the live buffers are not a part of those of another
 * moment; at each of them, the arena is full up to a height, and what is not placed yet must fit above it. A buffer
 * goes as low as the heights allow, so a packing is an order of buffers, and an order is given up as soon as some
 * moment lacks room. The search goes down into a few orders near the most promising one, then begins again with other
 * preferences, drawn at random. The lower bounds at every moment are those of MiniMalloc (Moffitt, ASPLOS 2023).
 * pack_test.c covers this file. */
#include "lib/memory/stack.h"

#include "lib/base/bisect.h"
#include "lib/base/numbers/random.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { TASTE_STREAM = 0x57 };
static const double MOST_VISITS = 1e7;        /* of cells, in one dive */
enum { BRANCHES = 3, PLACEMENTS_A_DIVE = 2 }; /* orders looked at from one place; placements of a dive per buffer */
enum { LOOKS_A_LIFE = 2 };                    /* they take as long as to look at one life of SLC_WORK_PACKED */

/* The weights of a choice's price: free bytes that it loses, in shares of what its moments may lose; then the share of
 * all moments at which it lives, its height in the arena, and chance. */
static const double SPARE_SHARE = 0.01, LONG_LIFE = 0.1, HIGH_UP = 0.3, CHANCE = 0.3;

/* The live bytes at one moment lie in [low, high) of the buffer; `live` is their sum, in which bytes of two parts count
 * twice. high 0: none live. */
typedef struct {
    int64_t low, high, live;
} hull;

/* Moments [first, end) with the same live bytes. */
typedef struct {
    uint32_t first, end;
    int64_t low, high;
} stretch;

typedef struct {
    const stretch *stretches; /* ascending */
    uint32_t stretch_count;
    uint32_t cell_count; /* moments at which it lives */
    uint32_t buffer;     /* its number */
    int64_t top;         /* end of its highest live byte */
    int64_t lowest;      /* the lowest offset that the heights allow now */
    double taste;        /* what this dive adds to its price */
    bool placed;
} block;

struct slc_stack {
    block *blocks;
    uint32_t block_count, moment_count;
    bool has_gaps; /* some buffer lives on both sides of dead bytes, or may */
    stretch *stretches;
    int64_t *height;  /* [moments] everything below is taken or lost */
    int64_t *waiting; /* [moments] bytes that live then and are not placed yet */
    int64_t *floor;   /* [moments] the lowest address at which any of them can begin */
    int64_t *all;     /* [moments] bytes that live then */
    /* [moments + 1] sums over the moments before: of what a byte of a hole costs there, and of that times the floor. So
     * the holes below a block cost as much to look at however long it lives. */
    double *byte_price, *floor_price;
    int64_t *undo; /* heights before each placement */
    size_t undo_count;
    int64_t *offset; /* [buffers] */
    uint32_t buffer_count;
    int64_t target;
    uint32_t tightest; /* the block that lacked room when an order was given up last */
    uint64_t placements_left;
    uint64_t drawn;
    uint64_t looks; /* at a height, a floor or what waits */
};

typedef struct {
    double price;
    uint32_t block;
    int64_t offset;
} choice;

typedef enum { STACKED, STUCK, SPENT } outcome;

/* ---- Moments ---- */

static bool is_empty(const slc_pack_part *part)
{
    return part->start >= part->end || part->first_byte >= part->end_byte;
}

typedef struct {
    uint32_t time;
    bool ends; /* else a part begins */
} event;

static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

/* The moments that are kept: the last one before each end that follows a beginning, since all that live since the end
 * before it live then. */
typedef struct {
    uint32_t *ends; /* [count] the ends that they are before, ascending */
    uint32_t count;
} kept_moments;

static sluice_status keep_moments(const slc_pack_buffer *buffers, size_t count, kept_moments *kept)
{
    size_t parts = 0, events = 0;
    for (size_t b = 0; b < count; b++) parts += buffers[b].part_count;
    *kept = (kept_moments){.ends = malloc((parts + 1) * sizeof *kept->ends)};
    event *list = malloc((2 * parts + 1) * sizeof *list);
    if (!kept->ends || !list) {
        free(list);
        return slc_error(SLUICE_ERR_MEMORY, "packing %zu buffers", count);
    }
    for (size_t b = 0; b < count; b++)
        for (uint32_t i = 0; i < buffers[b].part_count; i++) {
            const slc_pack_part *part = &buffers[b].parts[i];
            if (is_empty(part)) continue;
            list[events++] = (event){part->start, false};
            list[events++] = (event){part->end, true};
        }
    if (events) qsort(list, events, sizeof *list, by_time);
    bool begun = false;
    for (size_t i = 0, next; i < events; i = next) {
        bool begins = false, ends = false;
        for (next = i; next < events && list[next].time == list[i].time; next++) {
            begins |= !list[next].ends;
            ends |= list[next].ends;
        }
        if (begun && ends) {
            kept->ends[kept->count++] = list[i].time;
            begun = false;
        }
        begun |= begins;
    }
    free(list);
    return SLUICE_OK;
}

/* Returns how many kept moments are before a time. */
static uint32_t kept_before(const kept_moments *kept, uint32_t time)
{
    SLC_BISECT(uint32_t, low, 0, kept->count, kept->ends[low] <= time);
    return low;
}

/* Finds the moments between the first and the last at which the buffer lives; none: first is not before end. */
static void find_span(const slc_pack_buffer *buffer, const kept_moments *kept, uint32_t *first, uint32_t *end)
{
    uint32_t start = UINT32_MAX, last = 0;
    for (uint32_t i = 0; i < buffer->part_count; i++) {
        const slc_pack_part *part = &buffer->parts[i];
        if (is_empty(part)) continue;
        if (part->start < start) start = part->start;
        if (part->end > last) last = part->end;
    }
    *first = kept_before(kept, start);
    *end = kept_before(kept, last);
}

/* Writes the hull of the buffer's live bytes at each moment of [first, end), outside of which it does not live. */
static void list_hulls(const slc_pack_buffer *buffer, const kept_moments *kept, uint32_t first, uint32_t end,
                       hull *hulls)
{
    for (uint32_t m = first; m < end; m++) hulls[m] = (hull){INT64_MAX, 0, 0};
    for (uint32_t i = 0; i < buffer->part_count; i++) {
        const slc_pack_part *part = &buffer->parts[i];
        if (is_empty(part)) continue;
        for (uint32_t m = kept_before(kept, part->start), over = kept_before(kept, part->end); m < over; m++) {
            if ((int64_t)part->first_byte < hulls[m].low) hulls[m].low = (int64_t)part->first_byte;
            if ((int64_t)part->end_byte > hulls[m].high) hulls[m].high = (int64_t)part->end_byte;
            hulls[m].live += (int64_t)(part->end_byte - part->first_byte);
        }
    }
}

/* Counts the cells of all buffers, or a little more. */
static size_t most_cells(const slc_pack_buffer *buffers, size_t count, const kept_moments *kept)
{
    size_t most = 0;
    for (size_t b = 0; b < count; b++) {
        size_t cells = 0;
        for (uint32_t i = 0; i < buffers[b].part_count; i++)
            if (!is_empty(&buffers[b].parts[i]))
                cells += kept_before(kept, buffers[b].parts[i].end) - kept_before(kept, buffers[b].parts[i].start);
        most += cells < kept->count ? cells : kept->count;
    }
    return most;
}

static bool goes_on(const stretch *last, uint32_t moment, const hull *at)
{
    return last->end == moment && last->low == at->low && last->high == at->high;
}

/* Joins moments of equal hulls to stretches, which are written from `out` on, and sums up what the block is. */
static void describe_block(slc_stack *s, block *it, const hull *hulls, uint32_t first, uint32_t end, stretch *out)
{
    it->stretches = out;
    for (uint32_t m = first; m < end; m++) {
        const hull *at = &hulls[m];
        if (!at->high) continue;
        if (it->stretch_count && goes_on(&out[it->stretch_count - 1], m, at))
            out[it->stretch_count - 1].end++;
        else
            out[it->stretch_count++] = (stretch){m, m + 1, at->low, at->high};
        it->cell_count++;
        if (at->high > it->top) it->top = at->high;
        s->all[m] += at->high - at->low;
        s->has_gaps |= at->live != at->high - at->low;
    }
}

static void add_blocks(slc_stack *s, const slc_pack_buffer *buffers, const kept_moments *kept, hull *hulls)
{
    size_t used = 0;
    for (uint32_t b = 0; b < s->buffer_count; b++) {
        block *it = &s->blocks[s->block_count];
        uint32_t first, end;
        *it = (block){.buffer = b};
        find_span(&buffers[b], kept, &first, &end);
        list_hulls(&buffers[b], kept, first, end, hulls);
        describe_block(s, it, hulls, first, end, s->stretches + used);
        used += it->stretch_count;
        s->block_count += it->stretch_count > 0;
    }
}

sluice_status slc_stack_create(const slc_pack_buffer *buffers, size_t count, slc_stack **out)
{
    slc_stack *s = calloc(1, sizeof *s);
    kept_moments kept = {0};
    hull *hulls = NULL;
    sluice_status status = SLUICE_ERR_MEMORY;
    *out = NULL;
    if (!s || keep_moments(buffers, count, &kept)) goto free_all;
    uint32_t moments = s->moment_count = kept.count;
    s->buffer_count = (uint32_t)count;
    size_t cells = most_cells(buffers, count, &kept);
    if ((double)cells * (double)count > MOST_VISITS) {
        status = SLUICE_OK;
        goto free_all;
    }
    s->blocks = malloc((count + 1) * sizeof *s->blocks);
    s->stretches = malloc((cells + 1) * sizeof *s->stretches);
    s->height = calloc(4 * (size_t)moments + 1, sizeof *s->height);
    s->byte_price = calloc(2 * ((size_t)moments + 1), sizeof *s->byte_price);
    s->undo = malloc((cells + 1) * sizeof *s->undo);
    s->offset = calloc(count + 1, sizeof *s->offset);
    hulls = malloc(((size_t)moments + 1) * sizeof *hulls);
    if (!s->blocks || !s->stretches || !s->height || !s->byte_price || !s->undo || !s->offset || !hulls) goto free_all;
    s->waiting = s->height + moments;
    s->floor = s->waiting + moments;
    s->all = s->floor + moments;
    s->floor_price = s->byte_price + moments + 1;
    add_blocks(s, buffers, &kept, hulls);
    *out = s;
    status = SLUICE_OK;

free_all:
    free(hulls);
    free(kept.ends);
    if (!*out) slc_stack_destroy(s);
    return status ? slc_error(status, "packing %zu buffers", count) : SLUICE_OK;
}

void slc_stack_destroy(slc_stack *s)
{
    if (!s) return;
    free(s->offset);
    free(s->undo);
    free(s->byte_price);
    free(s->height);
    free(s->stretches);
    free(s->blocks);
    free(s);
}

/* ---- One placement ---- */

static int64_t highest(const int64_t *of, const stretch *over)
{
    int64_t most = of[over->first];
    for (uint32_t m = over->first + 1; m < over->end; m++)
        if (of[m] > most) most = of[m];
    return most;
}

/* Finds how low a block could go. */
static int64_t lowest_of(const slc_stack *s, const block *it)
{
    int64_t lowest = 0;
    for (uint32_t i = 0; i < it->stretch_count; i++) {
        const int64_t above = highest(s->height, &it->stretches[i]) - it->stretches[i].low;
        if (above > lowest) lowest = above;
    }
    return (lowest + SLC_PACK_ALIGNMENT - 1) / SLC_PACK_ALIGNMENT * SLC_PACK_ALIGNMENT;
}

static void lower_floors(slc_stack *s, const block *it)
{
    for (uint32_t i = 0; i < it->stretch_count; i++) {
        const stretch *over = &it->stretches[i];
        const int64_t begin = it->lowest + over->low;
        for (uint32_t m = over->first; m < over->end; m++)
            if (begin < s->floor[m]) s->floor[m] = begin;
    }
}

/* A byte of a hole costs more if there is less room beyond what waits. False: some moment lacks room. */
static bool price_holes(slc_stack *s)
{
    const double spare = SPARE_SHARE * (double)s->target;
    for (uint32_t m = 0; m < s->moment_count; m++) {
        const bool waits = s->floor[m] != INT64_MAX;
        const int64_t room = waits ? s->target - s->floor[m] - s->waiting[m] : 0;
        if (room < 0) return false;
        const double price = waits ? 1 / ((double)room + spare) : 0;
        s->byte_price[m + 1] = s->byte_price[m] + price;
        s->floor_price[m + 1] = s->floor_price[m] + (waits ? price * (double)s->floor[m] : 0);
    }
    return true;
}

/* Finds how low a waiting block could go. False: not low enough. */
static bool find_lowest(slc_stack *s, uint32_t b)
{
    block *it = &s->blocks[b];
    s->looks += it->cell_count;
    it->lowest = lowest_of(s, it);
    if (it->lowest + it->top <= s->target) return true;
    s->tightest = b;
    return false;
}

/* Finds how low each waiting block could go, the floors, and what holes cost. False: some moment lacks room whatever
 * comes next. That is mostly the one of the block that lacked it last, which is therefore looked at first. */
static bool find_floors(slc_stack *s)
{
    if (s->block_count && !s->blocks[s->tightest].placed && !find_lowest(s, s->tightest)) return false;
    for (uint32_t m = 0; m < s->moment_count; m++) s->floor[m] = INT64_MAX;
    for (uint32_t b = 0; b < s->block_count; b++) {
        if (s->blocks[b].placed) continue;
        if (!find_lowest(s, b)) return false;
        lower_floors(s, &s->blocks[b]);
        s->looks += 2 * (uint64_t)s->blocks[b].cell_count; /* now, and when it is priced */
    }
    s->looks += s->moment_count + s->block_count;
    return price_holes(s);
}

/* Prices the block as the next one. False: some moment would lack room. */
static bool price_of(const slc_stack *s, const block *it, double *price)
{
    double lost = 0;
    for (uint32_t i = 0; i < it->stretch_count; i++) {
        const stretch *over = &it->stretches[i];
        const int64_t begin = it->lowest + over->low;
        if (begin + highest(s->waiting, over) > s->target) return false;
        lost += (double)begin * (s->byte_price[over->end] - s->byte_price[over->first]) -
                (s->floor_price[over->end] - s->floor_price[over->first]);
    }
    *price = lost - LONG_LIFE * it->cell_count / s->moment_count + it->taste +
             HIGH_UP * (double)it->lowest / (double)s->target;
    return true;
}

/* Lists the cheapest next blocks, cheapest first; returns their number. */
static int list_choices(const slc_stack *s, choice list[BRANCHES])
{
    int count = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        choice next = {.block = b, .offset = s->blocks[b].lowest};
        if (s->blocks[b].placed || !price_of(s, &s->blocks[b], &next.price)) continue;
        int at = count;
        while (at && next.price < list[at - 1].price) at--;
        if (at == BRANCHES) continue;
        if (count < BRANCHES) count++;
        memmove(&list[at + 1], &list[at], (size_t)(count - 1 - at) * sizeof *list);
        list[at] = next;
    }
    return count;
}

static void place(slc_stack *s, const choice *next)
{
    block *it = &s->blocks[next->block];
    it->placed = true;
    s->offset[it->buffer] = next->offset;
    for (uint32_t i = 0; i < it->stretch_count; i++) {
        const stretch *over = &it->stretches[i];
        for (uint32_t m = over->first; m < over->end; m++) {
            s->undo[s->undo_count++] = s->height[m];
            s->height[m] = next->offset + over->high;
            s->waiting[m] -= over->high - over->low;
        }
    }
}

static void take_back(slc_stack *s, const choice *next)
{
    block *it = &s->blocks[next->block];
    it->placed = false;
    s->undo_count -= it->cell_count;
    const int64_t *before = s->undo + s->undo_count;
    for (uint32_t i = 0; i < it->stretch_count; i++) {
        const stretch *over = &it->stretches[i];
        for (uint32_t m = over->first; m < over->end; m++) {
            s->height[m] = *before++;
            s->waiting[m] += over->high - over->low;
        }
    }
}

/* ---- Dives ---- */

static outcome dive(slc_stack *s, uint32_t depth)
{
    choice list[BRANCHES];
    if (depth == s->block_count) return STACKED;
    if (!s->placements_left) return SPENT;
    s->placements_left--;
    if (!find_floors(s)) return STUCK;
    int count = list_choices(s, list);
    outcome result = STUCK;
    for (int i = 0; i < count && result == STUCK; i++) {
        place(s, &list[i]);
        result = dive(s, depth + 1);
        if (result != STACKED) take_back(s, &list[i]);
    }
    return result;
}

/* Draws a number from [0, 1). */
static double draw(slc_stack *s)
{
    return (double)slc_random_below(1, TASTE_STREAM, s->drawn++, UINT32_MAX) / UINT32_MAX;
}

/* Takes everything out of the arena and draws what this dive likes. */
static void begin_dive(slc_stack *s)
{
    memset(s->height, 0, s->moment_count * sizeof *s->height);
    memcpy(s->waiting, s->all, s->moment_count * sizeof *s->waiting);
    s->undo_count = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        block *it = &s->blocks[b];
        it->placed = false;
        it->taste = CHANCE * draw(s);
    }
}

uint64_t slc_stack_looked_at(const slc_stack *s)
{
    return s->looks / LOOKS_A_LIFE;
}

uint64_t slc_stack_lower_bound(slc_stack *s, bool *exact)
{
    int64_t bound = 0;
    s->target = INT64_MAX / 2;
    begin_dive(s);
    find_floors(s);
    for (uint32_t m = 0; m < s->moment_count; m++)
        if (s->floor[m] + s->waiting[m] > bound) bound = s->floor[m] + s->waiting[m];
    *exact = !s->has_gaps;
    return (uint64_t)bound;
}

void slc_stack_search(slc_stack *s, uint64_t target, uint64_t placements, int64_t *offset, int64_t *peak, bool *found)
{
    uint64_t a_dive = (uint64_t)PLACEMENTS_A_DIVE * s->block_count;
    bool first = true;
    s->target = (int64_t)target;
    *found = false;
    for (; !*found && (first || placements >= s->block_count); first = false) {
        begin_dive(s);
        uint64_t given = s->placements_left = first || placements > a_dive ? a_dive : placements;
        *found = dive(s, 0) == STACKED;
        uint64_t made = given - s->placements_left;
        placements -= made < placements ? made : placements;
    }
    if (!*found) return;
    *peak = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        int64_t end = s->offset[s->blocks[b].buffer] + s->blocks[b].top;
        if (end > *peak) *peak = end;
    }
    memcpy(offset, s->offset, s->buffer_count * sizeof *offset);
}
