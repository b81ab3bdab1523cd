/* Three passes over what is kept: down to the bottom in the order of the old places, there into the order of the new
 * places, then up to these. The k-th of a sorted pile never lies above its place, so that neither the first nor the
 * last pass overwrites bytes that are still to move. Sorting goes over the free memory above the pile where that is
 * large enough, else by rotating neighbours. All bytes move in the order of a stream, whether the host can touch them
 * or not. */
#include "lib/engine/replan/transition.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/model/unit.h"
#include "lib/plan/roles.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

/* ---- Moving ---- */

/* A pile: moves in the order in which their bytes lie, without gaps, each at its `from`. The first error stays, and
 * what comes after it does nothing. */
typedef struct {
    sluice_stream *stream;
    unsigned char *base;
    slc_move *moves;
    unsigned char *room;
    uint64_t room_bytes;
    sluice_status status;
} pile;

static void copy_bytes(pile *p, void *to, const void *from, uint64_t bytes)
{
    if (!p->status) p->status = slc_copy(p->stream, to, from, bytes);
}

static void move_bytes(pile *p, uint64_t to, uint64_t from, uint64_t bytes)
{
    if (!p->status) p->status = slc_move_bytes(p->stream, p->base + to, p->base + from, bytes);
}

static void swap_bytes(pile *p, uint64_t a, uint64_t b, uint64_t bytes)
{
    for (uint64_t at = 0, piece; at < bytes; at += piece) {
        piece = slc_least(bytes - at, p->room_bytes);
        copy_bytes(p, p->room, p->base + a + at, piece);
        copy_bytes(p, p->base + a + at, p->base + b + at, piece);
        copy_bytes(p, p->base + b + at, p->room, piece);
    }
}

/* x bytes at `begin` and the y bytes after them change places: the shorter run is swapped to its end until one of them
 * fits the room. */
static void rotate(pile *p, uint64_t begin, uint64_t x, uint64_t y)
{
    while (slc_least(x, y) > p->room_bytes) {
        if (x <= y) {
            swap_bytes(p, begin, begin + x, x);
            begin += x;
            y -= x;
        } else {
            swap_bytes(p, begin + x - y, begin + x, y);
            x -= y;
        }
    }
    if (!x || !y) return;
    if (x <= y) {
        copy_bytes(p, p->room, p->base + begin, x);
        move_bytes(p, begin, begin + x, y);
        copy_bytes(p, p->base + begin + y, p->room, x);
    } else {
        copy_bytes(p, p->room, p->base + begin + x, y);
        move_bytes(p, begin + y, begin, x);
        copy_bytes(p, p->base + begin, p->room, y);
    }
}

static uint64_t bytes_of(const pile *p, size_t first, size_t end)
{
    return first < end ? p->moves[end - 1].from + p->moves[end - 1].bytes - p->moves[first].from : 0;
}

static void reverse(slc_move *moves, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        const slc_move held = moves[i];
        moves[i] = moves[count - 1 - i];
        moves[count - 1 - i] = held;
    }
}

static void rotate_moves(pile *p, size_t first, size_t middle, size_t end)
{
    if (first == middle || middle == end) return;
    uint64_t at = p->moves[first].from;
    rotate(p, at, bytes_of(p, first, middle), bytes_of(p, middle, end));
    reverse(p->moves + first, middle - first);
    reverse(p->moves + middle, end - middle);
    reverse(p->moves + first, end - first);
    for (size_t i = first; i < end; i++) {
        p->moves[i].from = at;
        at += p->moves[i].bytes;
    }
}

/* Moves [low, high) are in order. Returns the first that shall lie at `to` or above. */
static size_t first_at(const pile *p, size_t low, size_t high, uint64_t to)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->moves[middle].to < to)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Merges two sorted neighbours: halves the longer one and rotates all that belongs before its second half there. */
static void merge(pile *p, size_t first, size_t middle, size_t end)
{
    if (first == middle || middle == end || p->moves[middle - 1].to < p->moves[middle].to) return;
    size_t left, right;
    if (middle - first >= end - middle) {
        left = first + (middle - first) / 2;
        right = first_at(p, middle, end, p->moves[left].to);
    } else {
        right = middle + (end - middle) / 2;
        left = first_at(p, first, middle, p->moves[right].to);
    }
    rotate_moves(p, left, middle, right);
    middle = left + (right - middle);
    merge(p, first, left, middle);
    merge(p, middle, right, end);
}

static void sort_in_place(pile *p, size_t first, size_t end)
{
    if (end - first < 2) return;
    size_t middle = first + (end - first) / 2;
    sort_in_place(p, first, middle);
    sort_in_place(p, middle, end);
    merge(p, first, middle, end);
}

static int by_from(const void *a, const void *b)
{
    const slc_move *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static int by_to(const void *a, const void *b)
{
    const slc_move *x = a, *y = b;
    return (x->to > y->to) - (x->to < y->to);
}

static uint64_t compact(pile *p, size_t count)
{
    uint64_t at = 0;
    qsort(p->moves, count, sizeof *p->moves, by_from);
    for (size_t i = 0; i < count; i++) {
        move_bytes(p, at, p->moves[i].from, p->moves[i].bytes);
        p->moves[i].from = at;
        at += p->moves[i].bytes;
    }
    return at;
}

/* Sorts by copying to the top, from where everything moves down. The k-th of a pile that ends at the top never lies
 * below its place. */
static void place_over_the_top(pile *p, size_t count, uint64_t top)
{
    qsort(p->moves, count, sizeof *p->moves, by_to);
    for (size_t i = count; i-- > 0;) {
        top -= p->moves[i].bytes;
        copy_bytes(p, p->base + top, p->base + p->moves[i].from, p->moves[i].bytes);
        p->moves[i].from = top;
    }
    for (size_t i = 0; i < count; i++) move_bytes(p, p->moves[i].to, p->moves[i].from, p->moves[i].bytes);
}

static bool is_sorted(const slc_move *moves, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (moves[i].to < moves[i - 1].to) return false;
    return true;
}

static bool in_place(const slc_move *moves, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (moves[i].to != moves[i].from) return false;
    return true;
}

sluice_status slc_moves_run(sluice_stream *stream, void *base, uint64_t bytes, slc_move *moves, size_t count,
                            void *room, uint64_t room_bytes)
{
    if (in_place(moves, count)) return SLUICE_OK;
    pile p = {.stream = stream, .base = base, .moves = moves, .room = room, .room_bytes = room_bytes};
    uint64_t kept = compact(&p, count);
    if (!is_sorted(moves, count) && kept <= bytes / 2) {
        place_over_the_top(&p, count, bytes);
    } else {
        sort_in_place(&p, 0, count);
        for (size_t i = count; i-- > 0;) move_bytes(&p, moves[i].to, moves[i].from, moves[i].bytes);
    }
    return p.status;
}

sluice_status slc_moves_copy(sluice_stream *stream, void *to, const void *from, const slc_move *moves, size_t count)
{
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < count; i++)
        status = slc_copy(stream, (unsigned char *)to + moves[i].to, (const unsigned char *)from + moves[i].from,
                          moves[i].bytes);
    return status;
}

/* ---- What moves ---- */

/* An array with a value for each element of a unit, as a plan holds it. */
typedef struct {
    uint64_t offset;
    bool shard;
    sluice_dtype dtype;
} place;

static sluice_status find_place(const slc_job *job, const slc_plan *plan, uint32_t unit, slc_buffer_kind kind,
                                uint32_t index, bool shard, place *out)
{
    uint32_t buffer = slc_plan_buffer(plan, kind, unit, index);
    if (buffer == SLC_NONE)
        return slc_error(SLUICE_ERR_FORMAT, "plan: unit \"%s\" (%s) has no %s", job->units[unit].name,
                         slc_strategy_name(plan->strategies[unit]), slc_buffer_kind_name(kind));
    *out = (place){plan->buffers[buffer].offset, shard, slc_buffer_dtype(job, &job->units[unit], kind)};
    return SLUICE_OK;
}

static sluice_status find_value(const slc_job *job, const slc_plan *plan, uint32_t unit, place *out)
{
    bool shard = plan->strategies[unit] == SLC_FSDP;
    return find_place(job, plan, unit, shard ? SLC_BUFFER_VALUE_SHARD : SLC_BUFFER_VALUE, 0, shard, out);
}

/* The master, or a state. */
static sluice_status find_owned(const slc_job *job, const slc_plan *plan, uint32_t unit, slc_buffer_kind kind,
                                uint32_t state, place *out)
{
    return find_place(job, plan, unit, kind, state, !slc_updates_whole(plan->strategies[unit]), out);
}

static void add_move(slc_transition *t, slc_move move)
{
    slc_move *last = t->move_count ? &t->moves[t->move_count - 1] : NULL;
    bool joins = last && last->from + last->bytes == move.from && last->to + last->bytes == move.to;
    if (joins)
        last->bytes += move.bytes;
    else
        t->moves[t->move_count++] = move;
}

/* Whole stays whole and a shard a shard; else the owned part of each block goes from one layout to the other. */
static void add_array(const slc_job *job, uint32_t u, uint32_t rank, place from, place to, slc_transition *t)
{
    const slc_unit *unit = &job->units[u];
    uint64_t blocks = slc_unit_blocks(unit), bytes = sluice_dtype_bytes(from.dtype);
    if (!from.shard && !to.shard) {
        add_move(t, (slc_move){from.offset, to.offset, bytes * unit->elements});
        return;
    }
    for (uint64_t b = 0; b < blocks; b++) {
        slc_part part = slc_unit_part(unit, job->world, b, rank);
        add_move(t, (slc_move){from.offset + bytes * (from.shard ? part.shard_first : part.first),
                               to.offset + bytes * (to.shard ? part.shard_first : part.first), bytes * part.count});
    }
    if (from.shard && !to.shard) t->gathers[t->gather_count++] = (slc_regather){u, to.offset, from.dtype};
}

static sluice_status add_owned(const slc_job *job, const slc_plan *from, const slc_plan *to, uint32_t rank, uint32_t u,
                               slc_buffer_kind kind, uint32_t state, slc_transition *t)
{
    place old = {0}, new = {0};
    sluice_status status = find_owned(job, from, u, kind, state, &old);
    if (!status) status = find_owned(job, to, u, kind, state, &new);
    if (!status) add_array(job, u, rank, old, new, t);
    return status;
}

/* A buffer that only onebit units have, each rank its own. */
static void add_private(const slc_plan *from, const slc_plan *to, uint32_t unit, slc_buffer_kind kind, uint32_t index,
                        slc_transition *t)
{
    uint32_t old = slc_plan_buffer(from, kind, unit, index), new = slc_plan_buffer(to, kind, unit, index);
    if (new == SLC_NONE || !to->buffers[new].bytes) return;
    uint64_t offset = to->buffers[new].offset, bytes = to->buffers[new].bytes;
    if (old == SLC_NONE)
        t->zeroed[t->zeroed_count++] = (slc_zeroed){offset, bytes};
    else
        add_move(t, (slc_move){from->buffers[old].offset, offset, bytes});
}

static sluice_status add_unit(const slc_job *job, const slc_plan *from, const slc_plan *to, uint32_t rank, uint32_t u,
                              slc_transition *t)
{
    if (slc_looks_up(&job->units[u])) return SLUICE_OK; /* it keeps only lists, which are made again */
    place old = {0}, new = {0};
    sluice_status status = find_value(job, from, u, &old);
    if (!status) status = find_value(job, to, u, &new);
    if (!status) add_array(job, u, rank, old, new, t);
    if (!status && slc_has_master(&job->units[u])) status = add_owned(job, from, to, rank, u, SLC_BUFFER_MASTER, 0, t);
    for (uint32_t s = 0; !status && job->units[u].trainable && s < job->states; s++)
        status = add_owned(job, from, to, rank, u, SLC_BUFFER_STATE, s, t);
    add_private(from, to, u, SLC_BUFFER_WORKER_ERROR, 0, t);
    add_private(from, to, u, SLC_BUFFER_SERVER_ERROR, 0, t);
    for (uint32_t i = 0; i < job->local_arrays; i++) add_private(from, to, u, SLC_BUFFER_LOCAL, i, t);
    return status;
}

sluice_status slc_transition_init(const slc_job *job, const slc_plan *from, const slc_plan *to, uint32_t rank,
                                  slc_transition *out)
{
    uint64_t private = 2 + job->local_arrays, arrays = 2 + job->states + private; /* value, master, states */
    uint64_t blocks = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) blocks += slc_unit_blocks(&job->units[u]);
    *out = (slc_transition){.moves = calloc(arrays * blocks + 1, sizeof *out->moves),
                            .gathers = calloc(arrays * job->unit_count + 1, sizeof *out->gathers),
                            .zeroed = calloc(private * job->unit_count + 1, sizeof *out->zeroed)};
    sluice_status status = SLUICE_OK;
    if (!out->moves || !out->gathers || !out->zeroed)
        status = slc_error(SLUICE_ERR_MEMORY, "transition of %llu blocks", (unsigned long long)blocks);
    for (uint32_t u = 0; !status && u < job->unit_count; u++) status = add_unit(job, from, to, rank, u, out);
    if (status) slc_transition_fini(out);
    return status;
}

void slc_transition_fini(slc_transition *transition)
{
    free(transition->moves);
    free(transition->gathers);
    free(transition->zeroed);
    slc_segment_destroy(&transition->larger);
    *transition = (slc_transition){0};
}
