/* From lifetimes to offsets. The packer sees one time axis: the items of a step, those of an evaluation pass, and one
 * moment of reading between steps. A claim that wraps into the next pass becomes two parts. If the same bytes are alive
 * at several moments, only the first of these is kept, so equal micro-batches are packed once; two buffers share a kept
 * moment exactly if they share any moment. make_plan_test.c covers this file. */
#include "lib/memory/lower_bound.h"
#include "sched/layout/parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

enum { MOST_MOVERS = 8 }; /* most buffers that move where all others keep their places */

typedef struct {
    uint64_t live; /* sum of random numbers, one for each range of bytes that is alive */
    uint32_t time;
} moment;

typedef struct {
    const slc_plan *plan;
    moment *moments;
    uint32_t moment_count;
    const uint32_t *until; /* as in slc_packing_effort */
    uint32_t *kept_before; /* [moments + 1] how many kept moments are before each */
    slc_pack_buffer *buffers;
    slc_pack_part *parts;
} packing;

static uint32_t reading_moment(const slc_plan *plan)
{
    return plan->train.item_count + plan->evaluate.item_count;
}

/* SplitMix64's mixing (Steele, Lea & Flood, OOPSLA 2014). */
static uint64_t scatter(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A claim's items: [from, end), and [0, next_end) of the next pass. */
typedef struct {
    uint32_t from, end, next_end;
} life;

static life life_of(const packing *p, uint32_t c)
{
    const slc_program *train = &p->plan->train;
    const slc_claim *claim = &train->claims[c];
    const uint32_t count = train->item_count;
    uint32_t last = p->until ? p->until[c] : claim->to + (slc_claim_wraps(train, claim) ? count : 0);
    if (last < count) return (life){claim->from, last + 1, 0};
    return (life){claim->from, count, last + 1 - count};
}

static void add_live(packing *p, const slc_claim *claim, uint32_t start, uint32_t end)
{
    uint64_t number = scatter(scatter(scatter(claim->buffer + 1) ^ claim->first_byte) ^ claim->end_byte);
    p->moments[start].live += number;
    p->moments[end].live -= number;
}

static int by_live(const void *a, const void *b)
{
    const moment *x = a, *y = b;
    if (x->live != y->live) return x->live < y->live ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

static void find_moments(packing *p)
{
    const slc_plan *plan = p->plan;
    uint32_t train = plan->train.item_count, reading = reading_moment(plan);
    p->moment_count = reading + 1;
    for (uint32_t i = 0; i < plan->train.claim_count; i++) {
        const slc_claim *claim = &plan->train.claims[i];
        const life lives = life_of(p, i);
        add_live(p, claim, lives.from, lives.end);
        if (lives.next_end) add_live(p, claim, 0, lives.next_end);
    }
    for (uint32_t i = 0; i < plan->evaluate.claim_count; i++)
        add_live(p, &plan->evaluate.claims[i], train + plan->evaluate.claims[i].from,
                 train + plan->evaluate.claims[i].to + 1);
    uint64_t live = 0;
    for (uint32_t t = 0; t < p->moment_count; t++) p->moments[t] = (moment){live += p->moments[t].live, t};
    p->moments[reading].live = scatter(UINT64_MAX); /* only the staging buffer is alive then */

    qsort(p->moments, p->moment_count, sizeof *p->moments, by_live);
    for (uint32_t i = 0; i < p->moment_count; i++)
        p->kept_before[p->moments[i].time] = !i || p->moments[i].live != p->moments[i - 1].live;
    uint32_t kept = 0;
    for (uint32_t t = 0; t <= p->moment_count; t++) {
        uint32_t keep = t < p->moment_count ? p->kept_before[t] : 0;
        p->kept_before[t] = kept;
        kept += keep;
    }
}

static void add_part(packing *p, uint32_t buffer, uint64_t first_byte, uint64_t end_byte, uint32_t start, uint32_t end)
{
    start = p->kept_before[start];
    end = p->kept_before[end];
    if (start == end) return;
    slc_pack_buffer *b = &p->buffers[buffer];
    p->parts[(size_t)(b->parts - p->parts) + b->part_count++] = (slc_pack_part){first_byte, end_byte, start, end};
}

static void reserve_parts(packing *p)
{
    const slc_plan *plan = p->plan;
    uint32_t *room = p->kept_before; /* not in use yet, and large enough */
    for (uint32_t b = 0; b < plan->buffer_count; b++) room[b] = 1;
    for (uint32_t i = 0; i < plan->train.claim_count; i++) room[plan->train.claims[i].buffer] += 2;
    for (uint32_t i = 0; i < plan->evaluate.claim_count; i++) room[plan->evaluate.claims[i].buffer]++;
    size_t used = 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        p->buffers[b] = (slc_pack_buffer){.bytes = plan->buffers[b].bytes, .parts = p->parts + used};
        used += room[b];
    }
}

static void collect_parts(packing *p)
{
    const slc_plan *plan = p->plan;
    uint32_t train = plan->train.item_count, reading = reading_moment(plan);
    for (uint32_t i = 0; i < plan->static_count; i++) {
        const slc_claim *claim = &plan->statics[i];
        add_part(p, claim->buffer, claim->first_byte, claim->end_byte, 0, reading + 1);
    }
    for (uint32_t i = 0; i < plan->train.claim_count; i++) {
        const slc_claim *claim = &plan->train.claims[i];
        const life lives = life_of(p, i);
        add_part(p, claim->buffer, claim->first_byte, claim->end_byte, lives.from, lives.end);
        if (lives.next_end) add_part(p, claim->buffer, claim->first_byte, claim->end_byte, 0, lives.next_end);
    }
    for (uint32_t i = 0; i < plan->evaluate.claim_count; i++) {
        const slc_claim *claim = &plan->evaluate.claims[i];
        add_part(p, claim->buffer, claim->first_byte, claim->end_byte, train + claim->from, train + claim->to + 1);
    }
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == SLC_BUFFER_STAGING)
            add_part(p, b, 0, plan->buffers[b].bytes, reading, reading + 1);
}

static void packing_fini(packing *p)
{
    free(p->parts);
    free(p->buffers);
    free(p->kept_before);
    free(p->moments);
}

/* Keeps every moment and looks for no equal ones. */
static void keep_all_moments(packing *p)
{
    p->moment_count = reading_moment(p->plan) + 1;
    for (uint32_t t = 0; t <= p->moment_count; t++) p->kept_before[t] = t;
}

/* `distinct`: equal moments are one, which makes fewer parts for a packer that looks at them often. */
static sluice_status packing_init(packing *p, const slc_plan *plan, const uint32_t *until, bool distinct)
{
    size_t times = (size_t)reading_moment(plan) + 2;
    size_t parts = (size_t)plan->buffer_count + 2 * (size_t)plan->train.claim_count + plan->evaluate.claim_count + 1;
    *p = (packing){.plan = plan, .until = until};
    p->moments = calloc(times, sizeof *p->moments);
    p->kept_before = calloc(times > plan->buffer_count ? times : plan->buffer_count, sizeof *p->kept_before);
    p->buffers = calloc((size_t)plan->buffer_count + 1, sizeof *p->buffers);
    p->parts = calloc(parts, sizeof *p->parts);
    if (!p->moments || !p->kept_before || !p->buffers || !p->parts) {
        packing_fini(p);
        return slc_error(SLUICE_ERR_MEMORY, "no memory for packing");
    }
    reserve_parts(p);
    if (distinct)
        find_moments(p);
    else
        keep_all_moments(p);
    collect_parts(p);
    return SLUICE_OK;
}

static void set_apart(slc_plan *plan)
{
    uint64_t offset = 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        plan->buffers[b].offset = offset;
        offset += slc_aligned(plan->buffers[b].bytes);
    }
}

/* ---- The places of another plan ---- */

static int by_offset(const void *a, const void *b)
{
    const slc_pack_buffer *x = *(const slc_pack_buffer *const *)a, *y = *(const slc_pack_buffer *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x > y) - (x < y);
}

static uint64_t end_of(const slc_pack_buffer *buffer)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < buffer->part_count; i++)
        if (buffer->parts[i].end_byte > last) last = buffer->parts[i].end_byte;
    return buffer->offset + last;
}

static uint64_t highest_end(const packing *p)
{
    uint64_t highest = 0;
    for (uint32_t b = 0; b < p->plan->buffer_count; b++) {
        const uint64_t end = end_of(&p->buffers[b]);
        if (end > highest && p->buffers[b].part_count) highest = end;
    }
    return highest;
}

/* Buffers that cannot stay where they are. */
typedef struct {
    bool *moves; /* [buffers] */
    uint32_t list[MOST_MOVERS];
    uint32_t count; /* more than MOST_MOVERS: too many */
} movers;

/* Lists one more, behind those that are larger. */
static void add_mover(const packing *p, movers *m, uint32_t buffer)
{
    m->moves[buffer] = true;
    if (m->count++ >= MOST_MOVERS) return;
    uint32_t at = m->count - 1;
    for (; at && p->buffers[m->list[at - 1]].bytes < p->buffers[buffer].bytes; at--) m->list[at] = m->list[at - 1];
    m->list[at] = buffer;
}

/* Lists the buffers that end above the limit, and the smaller one of each two that share a byte at some moment.
 * `sorted` is room for all of them. */
static void list_movers(const packing *p, uint64_t limit, const slc_pack_buffer **sorted, movers *m, double *looks)
{
    const uint32_t count = p->plan->buffer_count;
    for (uint32_t b = 0; b < count; b++) {
        sorted[b] = &p->buffers[b];
        if (end_of(&p->buffers[b]) > limit) add_mover(p, m, b);
    }
    if (count) qsort(sorted, count, sizeof *sorted, by_offset);
    for (uint32_t i = 0; i < count && m->count <= MOST_MOVERS; i++)
        for (uint32_t k = i + 1; k < count && sorted[k]->offset < sorted[i]->offset + sorted[i]->bytes; k++) {
            const uint32_t lower = (uint32_t)(sorted[i] - p->buffers), upper = (uint32_t)(sorted[k] - p->buffers);
            if (m->moves[lower]) break;
            *looks += (double)sorted[i]->part_count * sorted[k]->part_count;
            if (!m->moves[upper] && slc_pack_clash(sorted[i], sorted[k]))
                add_mover(p, m, sorted[k]->bytes <= sorted[i]->bytes ? upper : lower);
        }
}

/* Gives every buffer its offset. Buffers that cannot stay there go to gaps between the others, if they are few; *few
 * tells whether they are. */
static sluice_status take_places(packing *p, const uint64_t *offsets, uint64_t limit, slc_work *work, bool *few)
{
    const uint32_t count = p->plan->buffer_count;
    const slc_pack_buffer **sorted = malloc(((size_t)count + 1) * sizeof *sorted);
    movers m = {.moves = calloc((size_t)count + 1, sizeof *m.moves)};
    double looks = count;
    uint64_t looked_at = 0;
    sluice_status status = sorted && m.moves ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "no memory for packing");
    for (uint32_t b = 0; b < count; b++) p->buffers[b].offset = offsets ? offsets[b] : p->plan->buffers[b].offset;
    if (!status) list_movers(p, limit, sorted, &m, &looks);
    *few = !status && m.count <= MOST_MOVERS;
    for (uint32_t k = 0; *few && !status && k < m.count; k++) {
        status = slc_pack_one(p->buffers, count, m.moves, m.list[k], &looked_at);
        m.moves[m.list[k]] = false;
    }
    slc_work_add(work, SLC_WORK_PACKED, looks + (double)looked_at);
    free(m.moves);
    free(sorted);
    return status;
}

sluice_status slc_plan_place(slc_plan *plan, const uint64_t *offsets, uint64_t limit, slc_work *work)
{
    packing p;
    bool few;
    sluice_status status = packing_init(&p, plan, NULL, false);
    if (status) return status;
    status = take_places(&p, offsets, limit, work, &few);
    plan->lower_bound = 0;
    plan->arena_bytes = few ? highest_end(&p) : UINT64_MAX;
    for (uint32_t b = 0; b < plan->buffer_count; b++) plan->buffers[b].offset = p.buffers[b].offset;
    slc_work_add(work, SLC_WORK_PLACED, p.moment_count + 2.0 * plan->train.claim_count);
    packing_fini(&p);
    return status;
}

sluice_status slc_plan_find_bound(slc_plan *plan, slc_work *work)
{
    packing p;
    sluice_status status = packing_init(&p, plan, NULL, true);
    if (status) return status;
    plan->lower_bound = slc_pack_lower_bound(p.buffers, plan->buffer_count);
    slc_work_add(work, SLC_WORK_LIFE, p.moment_count + 2.0 * plan->train.claim_count);
    packing_fini(&p);
    return SLUICE_OK;
}

/* ---- Packing ---- */

static sluice_status search_places(packing *p, slc_plan *plan, const slc_packing_effort *effort)
{
    uint64_t looked_at = 0;
    sluice_status status =
        slc_pack_bundled(p->buffers, plan->buffer_count, effort->enough, effort->tries, &plan->arena_bytes, &looked_at);
    slc_work_add(effort->work, SLC_WORK_PACKED, (double)looked_at);
    return status;
}

/* Counts the pairs of parts of one buffer that are compared to find the bytes of it that live. The pairs of buffers
 * with few parts are not counted: the price of a life contains them. */
static double count_pairs(const packing *p)
{
    enum { FEW_PARTS = 64, LOOKS = 2 };
    double pairs = 0;
    for (uint32_t b = 0; b < p->plan->buffer_count; b++) {
        const double parts = p->buffers[b].part_count;
        if (parts > FEW_PARTS) pairs += LOOKS * parts * parts;
    }
    return pairs;
}

sluice_status slc_plan_pack(slc_plan *plan, const slc_packing_effort *effort)
{
    packing p;
    sluice_status status = packing_init(&p, plan, effort->until, true);
    if (status) return status;
    slc_work_add(effort->work, SLC_WORK_LIFE, p.moment_count + 2.0 * plan->train.claim_count);
    slc_work_add(effort->work, SLC_WORK_PACKED, count_pairs(&p));
    plan->lower_bound = plan->arena_bytes = slc_pack_lower_bound(p.buffers, plan->buffer_count);
    if (effort->apart) {
        set_apart(plan);
    } else if (plan->lower_bound <= effort->limit) {
        status = search_places(&p, plan, effort);
        for (uint32_t b = 0; b < plan->buffer_count; b++) plan->buffers[b].offset = p.buffers[b].offset;
    }
    packing_fini(&p);
    return status;
}

/* ---- Moving one buffer ---- */

/* Returns true if the buffer, at its offset, shares a byte with any other at some moment. */
static bool meets_another(const packing *p, uint32_t buffer, double *looks)
{
    const slc_pack_buffer *mine = &p->buffers[buffer];
    for (uint32_t b = 0; b < p->plan->buffer_count; b++) {
        const slc_pack_buffer *other = &p->buffers[b];
        ++*looks;
        if (b == buffer || other->offset >= mine->offset + mine->bytes || mine->offset >= other->offset + other->bytes)
            continue;
        *looks += (double)mine->part_count * other->part_count;
        if (slc_pack_clash(mine, other)) return true;
    }
    return false;
}

sluice_status slc_plan_places_beside(const slc_plan *plan, uint32_t buffer, const uint32_t *neighbours, uint32_t count,
                                     const slc_packing_effort *effort, uint64_t *places, uint32_t *found)
{
    packing p;
    double looks = 0;
    sluice_status status = packing_init(&p, plan, NULL, false);
    *found = 0;
    if (status) return status;
    slc_pack_buffer *mine = &p.buffers[buffer];
    for (uint32_t b = 0; b < plan->buffer_count; b++) p.buffers[b].offset = plan->buffers[b].offset;
    for (uint32_t i = 0; i < 2 * count; i++) {
        const slc_pack_buffer *next = &p.buffers[neighbours[i / 2]];
        const uint64_t room = slc_aligned(mine->bytes);
        const bool above = i % 2;
        if (next == mine || (!above && next->offset < room)) continue;
        mine->offset = above ? next->offset + slc_aligned(next->bytes) : next->offset - room;
        if (mine->offset != plan->buffers[buffer].offset && mine->offset + mine->bytes <= effort->limit &&
            !meets_another(&p, buffer, &looks))
            places[(*found)++] = mine->offset;
    }
    slc_work_add(effort->work, SLC_WORK_PLACED, p.moment_count + 2.0 * plan->train.claim_count);
    slc_work_add(effort->work, SLC_WORK_PACKED, looks);
    packing_fini(&p);
    return SLUICE_OK;
}
