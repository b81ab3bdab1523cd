/* Stacking from the bottom up. A moment counts only if its live buffers are not a subset of another moment's. At each
 * moment that counts, the arena is full up to a height, and what is not placed yet must fit above it. A buffer goes as
 * low as the placed ones allow, so a packing is an order of buffers, and an order is given up as soon as some moment
 * lacks room. For each pair of buffers, the least distance between their offsets if one lies on top of the other is
 * worked out once, so placing a buffer looks at its neighbours alone. The search goes down into a few orders near the
 * most promising one, then begins again with other preferences, drawn at random. The lower bounds at every moment are
 * those of MiniMalloc (Moffitt, ASPLOS 2023). pack_test.c covers this file. */
#include "lib/memory/stack.h"

#include "lib/base/bisect.h"
#include "lib/base/numbers/random.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { TASTE_STREAM = 0x57 };
static const double MOST_VISITS = 1e7;       /* of cells, in one dive */
static const double PLACEMENTS_A_DIVE = 1.4; /* for each buffer: dives that find something seldom take more */
enum { BRANCHES = 3 };                       /* orders looked at from one place */

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

/* Another block that lives at one of a block's moments. If it lies above that block, its offset is at least `higher`
 * above that block's. */
typedef struct {
    uint32_t block;
    int64_t higher;
} neighbour;

typedef struct {
    const stretch *stretches; /* ascending */
    neighbour *neighbours;
    uint32_t stretch_count, neighbour_count;
    uint32_t cell_count; /* moments at which it lives */
    uint32_t buffer;     /* its number */
    int64_t top;         /* end of its highest live byte */
    int64_t lowest;      /* the lowest offset that the placed blocks allow */
    double taste;        /* what this dive adds to its price */
    bool placed;
} block;

/* The value that `lowest` of a block had before a placement raised it. */
typedef struct {
    uint32_t block;
    int64_t lowest;
} raised_block;

struct slc_stack {
    block *blocks;
    uint32_t block_count, moment_count;
    bool has_gaps; /* some buffer lives on both sides of dead bytes, or may */
    stretch *stretches;
    neighbour *neighbours;
    int64_t *waiting; /* [moments] bytes that live then and are not placed yet */
    int64_t *floor;   /* [moments] the lowest address at which any of them can begin */
    int64_t *all;     /* [moments] bytes that live then */
    /* [moments + 1] sums over the moments before: of the price of a byte of a hole there, and of that price times the
     * floor. With these sums, the holes below a block take as long to price however long the block lives. */
    double *byte_price, *floor_price;
    raised_block *raised; /* by all placements so far */
    size_t raised_count;
    int64_t *offset; /* [buffers] */
    uint32_t buffer_count;
    int64_t target;
    uint64_t placements_left;
    uint64_t drawn;
    uint64_t looks; /* at a floor, a block or a neighbour */
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

/* The moments that are kept. Each is the last one before an end that follows a beginning: everything that lives at some
 * time since the end before it lives then. */
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

/* ---- Neighbours ---- */

static uint32_t end_of(const block *it)
{
    return it->stretches[it->stretch_count - 1].end;
}

static bool may_meet(const block *a, const block *b)
{
    return a->stretches[0].first < end_of(b) && b->stretches[0].first < end_of(a);
}

/* Finds by how much b begins higher if it lies above a, and a if it lies above b. False: they never live at once. */
static bool find_heights(const block *a, const block *b, int64_t *of_b, int64_t *of_a)
{
    bool meet = false;
    *of_a = *of_b = INT64_MIN;
    for (uint32_t i = 0, k = 0; i < a->stretch_count && k < b->stretch_count;) {
        const stretch *x = &a->stretches[i], *y = &b->stretches[k];
        if (x->first < y->end && y->first < x->end) {
            meet = true;
            if (x->high - y->low > *of_b) *of_b = x->high - y->low;
            if (y->high - x->low > *of_a) *of_a = y->high - x->low;
        }
        *(x->end < y->end ? &i : &k) += 1;
    }
    return meet;
}

/* Lists the neighbours of all blocks. False: no memory. */
static bool add_neighbours(slc_stack *s)
{
    size_t pairs = 0, used = 0;
    for (uint32_t a = 0; a < s->block_count; a++)
        for (uint32_t b = 0; b < a; b++)
            if (may_meet(&s->blocks[a], &s->blocks[b])) {
                pairs++;
                s->blocks[a].neighbour_count++;
                s->blocks[b].neighbour_count++;
            }
    s->neighbours = malloc((2 * pairs + 1) * sizeof *s->neighbours);
    s->raised = malloc((pairs + 1) * sizeof *s->raised); /* of a pair the one that is placed last */
    if (!s->neighbours || !s->raised) return false;
    for (uint32_t b = 0; b < s->block_count; b++) {
        s->blocks[b].neighbours = s->neighbours + used;
        used += s->blocks[b].neighbour_count;
        s->blocks[b].neighbour_count = 0;
    }
    for (uint32_t a = 0; a < s->block_count; a++)
        for (uint32_t b = 0; b < a; b++) {
            block *x = &s->blocks[a], *y = &s->blocks[b];
            int64_t of_x, of_y;
            if (!may_meet(x, y) || !find_heights(x, y, &of_y, &of_x)) continue;
            x->neighbours[x->neighbour_count++] = (neighbour){b, of_y};
            y->neighbours[y->neighbour_count++] = (neighbour){a, of_x};
        }
    return true;
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
    s->waiting = calloc(3 * (size_t)moments + 1, sizeof *s->waiting);
    s->byte_price = calloc(2 * ((size_t)moments + 1), sizeof *s->byte_price);
    s->offset = calloc(count + 1, sizeof *s->offset);
    hulls = malloc(((size_t)moments + 1) * sizeof *hulls);
    if (!s->blocks || !s->stretches || !s->waiting || !s->byte_price || !s->offset || !hulls) goto free_all;
    s->floor = s->waiting + moments;
    s->all = s->floor + moments;
    s->floor_price = s->byte_price + moments + 1;
    add_blocks(s, buffers, &kept, hulls);
    if (!add_neighbours(s)) goto free_all;
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
    free(s->raised);
    free(s->neighbours);
    free(s->byte_price);
    free(s->waiting);
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

static void lower_floors(slc_stack *s, const block *it)
{
    for (uint32_t i = 0; i < it->stretch_count; i++) {
        const stretch *over = &it->stretches[i];
        const int64_t begin = it->lowest + over->low;
        int64_t *const floor = s->floor;
        /* Written in any case, since which is lower cannot be foretold. */
        for (uint32_t m = over->first; m < over->end; m++) floor[m] = begin < floor[m] ? begin : floor[m];
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

/* Finds the floors, and what holes cost. False: some block or some moment lacks room whatever comes next. */
static bool find_floors(slc_stack *s)
{
    for (uint32_t b = 0; b < s->block_count; b++)
        if (!s->blocks[b].placed && s->blocks[b].lowest + s->blocks[b].top > s->target) return false;
    for (uint32_t m = 0; m < s->moment_count; m++) s->floor[m] = INT64_MAX;
    for (uint32_t b = 0; b < s->block_count; b++) {
        if (s->blocks[b].placed) continue;
        lower_floors(s, &s->blocks[b]);
        s->looks += s->blocks[b].cell_count;
    }
    s->looks += s->moment_count + s->block_count;
    return price_holes(s);
}

/* Prices the block as the next one. */
static double price_of(const slc_stack *s, const block *it)
{
    double lost = 0;
    for (uint32_t i = 0; i < it->stretch_count; i++) {
        const stretch *over = &it->stretches[i];
        lost += (double)(it->lowest + over->low) * (s->byte_price[over->end] - s->byte_price[over->first]) -
                (s->floor_price[over->end] - s->floor_price[over->first]);
    }
    return lost - LONG_LIFE * it->cell_count / s->moment_count + it->taste +
           HIGH_UP * (double)it->lowest / (double)s->target;
}

/* Returns true if all moments of the block would have room for what waits. */
static bool leaves_room(const slc_stack *s, const block *it)
{
    for (uint32_t i = 0; i < it->stretch_count; i++)
        if (it->lowest + it->stretches[i].low + highest(s->waiting, &it->stretches[i]) > s->target) return false;
    return true;
}

/* Lists the cheapest next blocks, cheapest first; returns their number. */
static int list_choices(const slc_stack *s, choice list[BRANCHES])
{
    int count = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        const block *it = &s->blocks[b];
        if (it->placed) continue;
        const choice next = {price_of(s, it), b, it->lowest};
        int at = count;
        while (at && next.price < list[at - 1].price) at--;
        if (at == BRANCHES || !leaves_room(s, it)) continue;
        if (count < BRANCHES) count++;
        memmove(&list[at + 1], &list[at], (size_t)(count - 1 - at) * sizeof *list);
        list[at] = next;
    }
    return count;
}

static int64_t aligned(int64_t offset)
{
    return (offset + SLC_PACK_ALIGNMENT - 1) / SLC_PACK_ALIGNMENT * SLC_PACK_ALIGNMENT;
}

static void raise_neighbours(slc_stack *s, const block *it, int64_t offset)
{
    for (uint32_t n = 0; n < it->neighbour_count; n++) {
        const neighbour *next = &it->neighbours[n];
        block *other = &s->blocks[next->block];
        if (other->placed || offset + next->higher <= other->lowest) continue;
        s->raised[s->raised_count++] = (raised_block){next->block, other->lowest};
        other->lowest = aligned(offset + next->higher);
    }
    s->looks += it->neighbour_count;
}

static void place(slc_stack *s, const choice *next)
{
    block *it = &s->blocks[next->block];
    it->placed = true;
    s->offset[it->buffer] = next->offset;
    for (uint32_t i = 0; i < it->stretch_count; i++) {
        const stretch *over = &it->stretches[i];
        for (uint32_t m = over->first; m < over->end; m++) s->waiting[m] -= over->high - over->low;
    }
    raise_neighbours(s, it, next->offset);
}

/* Takes back the block that was placed when `raised_before` other blocks had been raised. */
static void take_back(slc_stack *s, const choice *next, size_t raised_before)
{
    block *it = &s->blocks[next->block];
    it->placed = false;
    while (s->raised_count > raised_before) {
        const raised_block *before = &s->raised[--s->raised_count];
        s->blocks[before->block].lowest = before->lowest;
    }
    for (uint32_t i = 0; i < it->stretch_count; i++) {
        const stretch *over = &it->stretches[i];
        for (uint32_t m = over->first; m < over->end; m++) s->waiting[m] += over->high - over->low;
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
    const size_t raised_before = s->raised_count;
    for (int i = 0; i < count && result == STUCK; i++) {
        place(s, &list[i]);
        result = dive(s, depth + 1);
        if (result != STACKED) take_back(s, &list[i], raised_before);
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
    memcpy(s->waiting, s->all, s->moment_count * sizeof *s->waiting);
    s->raised_count = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        block *it = &s->blocks[b];
        it->placed = false;
        it->lowest = 0;
        it->taste = CHANCE * draw(s);
    }
}

uint64_t slc_stack_looked_at(const slc_stack *s)
{
    return s->looks;
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
    const uint64_t a_dive = (uint64_t)(PLACEMENTS_A_DIVE * s->block_count) + 1;
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
