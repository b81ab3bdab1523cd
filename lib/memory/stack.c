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

/* The weights of a choice's price: free bytes that it loses, in shares of what its moments may lose; then the share of
 * all moments at which it lives, its height in the arena, and chance. */
static const double SPARE_SHARE = 0.01, LONG_LIFE = 0.1, HIGH_UP = 0.3, CHANCE = 0.3;

typedef struct {
    uint32_t moment;
    int64_t low, high; /* the live bytes lie in [low, high) of the buffer */
    int64_t live;      /* their sum; bytes of two parts count twice */
} cell;

typedef struct {
    const cell *cells;
    uint32_t cell_count;
    uint32_t buffer; /* its number */
    int64_t top;     /* end of its highest live byte */
    int64_t lowest;  /* the lowest offset that the heights allow now */
    double taste;    /* what this dive adds to its price */
    bool placed;
} block;

struct slc_stack {
    block *blocks;
    uint32_t block_count, moment_count;
    bool has_gaps; /* some buffer lives on both sides of dead bytes, or may */
    cell *cells;
    int64_t *height;  /* [moments] everything below is taken or lost */
    int64_t *waiting; /* [moments] bytes that live then and are not placed yet */
    int64_t *floor;   /* [moments] the lowest address at which any of them can begin */
    int64_t *undo;    /* heights before each placement */
    size_t undo_count;
    int64_t *offset; /* [buffers] */
    uint32_t buffer_count;
    int64_t target;
    uint64_t placements_left;
    uint64_t drawn;
    size_t waiting_cells; /* of the blocks that are not placed */
    uint64_t looked_at;
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

/* Writes one cell for each moment at which the buffer lives and returns their number. `whole` has a cell for each
 * moment. */
static uint32_t list_cells(const slc_pack_buffer *buffer, const kept_moments *kept, cell *whole, cell *out)
{
    const uint32_t moments = kept->count;
    for (uint32_t m = 0; m < moments; m++) whole[m] = (cell){m, INT64_MAX, 0, 0};
    for (uint32_t i = 0; i < buffer->part_count; i++) {
        const slc_pack_part *part = &buffer->parts[i];
        if (is_empty(part)) continue;
        for (uint32_t m = kept_before(kept, part->start), end = kept_before(kept, part->end); m < end; m++) {
            if ((int64_t)part->first_byte < whole[m].low) whole[m].low = (int64_t)part->first_byte;
            if ((int64_t)part->end_byte > whole[m].high) whole[m].high = (int64_t)part->end_byte;
            whole[m].live += (int64_t)(part->end_byte - part->first_byte);
        }
    }
    uint32_t count = 0;
    for (uint32_t m = 0; m < moments; m++)
        if (whole[m].high) out[count++] = whole[m];
    return count;
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

static void add_blocks(slc_stack *s, const slc_pack_buffer *buffers, const kept_moments *kept, cell *whole)
{
    size_t used = 0;
    for (uint32_t b = 0; b < s->buffer_count; b++) {
        block *it = &s->blocks[s->block_count];
        *it = (block){.cells = s->cells + used, .buffer = b};
        it->cell_count = list_cells(&buffers[b], kept, whole, s->cells + used);
        if (!it->cell_count) continue;
        used += it->cell_count;
        s->block_count++;
        for (uint32_t i = 0; i < it->cell_count; i++) {
            const cell *c = &it->cells[i];
            if (c->high > it->top) it->top = c->high;
            s->has_gaps |= c->live != c->high - c->low;
        }
    }
}

sluice_status slc_stack_create(const slc_pack_buffer *buffers, size_t count, slc_stack **out)
{
    slc_stack *s = calloc(1, sizeof *s);
    kept_moments kept = {0};
    cell *whole = NULL;
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
    s->cells = malloc((cells + 1) * sizeof *s->cells);
    s->height = malloc((3 * (size_t)moments + 1) * sizeof *s->height);
    s->undo = malloc((cells + 1) * sizeof *s->undo);
    s->offset = calloc(count + 1, sizeof *s->offset);
    whole = malloc(((size_t)moments + 1) * sizeof *whole);
    if (!s->blocks || !s->cells || !s->height || !s->undo || !s->offset || !whole) goto free_all;
    s->waiting = s->height + moments;
    s->floor = s->waiting + moments;
    add_blocks(s, buffers, &kept, whole);
    *out = s;
    status = SLUICE_OK;

free_all:
    free(whole);
    free(kept.ends);
    if (!*out) slc_stack_destroy(s);
    return status ? slc_error(status, "packing %zu buffers", count) : SLUICE_OK;
}

void slc_stack_destroy(slc_stack *s)
{
    if (!s) return;
    free(s->offset);
    free(s->undo);
    free(s->height);
    free(s->cells);
    free(s->blocks);
    free(s);
}

/* ---- One placement ---- */

/* Finds how low each waiting block could go, and the floors. False: some moment lacks room whatever comes next. */
static bool find_floors(slc_stack *s)
{
    for (uint32_t m = 0; m < s->moment_count; m++) s->floor[m] = INT64_MAX;
    for (uint32_t b = 0; b < s->block_count; b++) {
        block *it = &s->blocks[b];
        if (it->placed) continue;
        int64_t lowest = 0;
        for (uint32_t i = 0; i < it->cell_count; i++) {
            int64_t above = s->height[it->cells[i].moment] - it->cells[i].low;
            if (above > lowest) lowest = above;
        }
        it->lowest = lowest = (lowest + SLC_PACK_ALIGNMENT - 1) / SLC_PACK_ALIGNMENT * SLC_PACK_ALIGNMENT;
        if (lowest + it->top > s->target) return false;
        for (uint32_t i = 0; i < it->cell_count; i++) {
            int64_t begin = lowest + it->cells[i].low;
            if (begin < s->floor[it->cells[i].moment]) s->floor[it->cells[i].moment] = begin;
        }
    }
    for (uint32_t m = 0; m < s->moment_count; m++)
        if (s->floor[m] != INT64_MAX && s->floor[m] + s->waiting[m] > s->target) return false;
    return true;
}

/* Prices the block as the next one. False: some moment would lack room. */
static bool price_of(const slc_stack *s, const block *it, double *price)
{
    double spare = SPARE_SHARE * (double)s->target, lost = 0;
    for (uint32_t i = 0; i < it->cell_count; i++) {
        uint32_t m = it->cells[i].moment;
        int64_t hole = it->lowest + it->cells[i].low - s->floor[m], room = s->target - s->floor[m] - s->waiting[m];
        if (hole > room) return false;
        if (hole) lost += (double)hole / ((double)room + spare);
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
    s->waiting_cells -= it->cell_count;
    s->offset[it->buffer] = next->offset;
    for (uint32_t i = 0; i < it->cell_count; i++) {
        const cell *c = &it->cells[i];
        s->undo[s->undo_count++] = s->height[c->moment];
        s->height[c->moment] = next->offset + c->high;
        s->waiting[c->moment] -= c->high - c->low;
    }
}

static void take_back(slc_stack *s, const choice *next)
{
    block *it = &s->blocks[next->block];
    it->placed = false;
    s->waiting_cells += it->cell_count;
    s->undo_count -= it->cell_count;
    for (uint32_t i = 0; i < it->cell_count; i++) {
        const cell *c = &it->cells[i];
        s->height[c->moment] = s->undo[s->undo_count + i];
        s->waiting[c->moment] += c->high - c->low;
    }
}

/* ---- Dives ---- */

static outcome dive(slc_stack *s, uint32_t depth)
{
    choice list[BRANCHES];
    if (depth == s->block_count) return STACKED;
    if (!s->placements_left) return SPENT;
    s->placements_left--;
    s->looked_at += 2 * (s->waiting_cells + s->moment_count) + s->block_count;
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
    memset(s->waiting, 0, s->moment_count * sizeof *s->waiting);
    s->undo_count = 0;
    s->waiting_cells = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        block *it = &s->blocks[b];
        s->waiting_cells += it->cell_count;
        it->placed = false;
        it->taste = CHANCE * draw(s);
        for (uint32_t i = 0; i < it->cell_count; i++)
            s->waiting[it->cells[i].moment] += it->cells[i].high - it->cells[i].low;
    }
}

uint64_t slc_stack_looked_at(const slc_stack *s)
{
    return s->looked_at;
}

uint64_t slc_stack_lower_bound(slc_stack *s, bool *exact)
{
    int64_t bound = 0;
    s->target = INT64_MAX / 2;
    begin_dive(s);
    s->looked_at += s->waiting_cells + s->moment_count;
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
