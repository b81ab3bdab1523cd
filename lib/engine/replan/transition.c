/* Three passes over what is kept: down to the bottom in the order of the old places, there into the order of the new
 * places, then up to these. The k-th of a sorted pile never lies above its place, so that neither the first nor the
 * last pass overwrites bytes that are still to move. Sorting goes over the free memory above the pile if that is
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

/* A move of a whole plan; `origins` NULL: both plans are of one job. */
typedef struct {
    const slc_job *job, *job_before;
    const slc_unit_origins *origins;
    const slc_plan *from, *to;
    uint64_t room_bytes;
    uint32_t rank;
    slc_transition *t;
} route;

bool slc_has_kept_array(const slc_job *job, uint32_t unit, uint32_t array)
{
    const slc_unit *of = &job->units[unit];
    if (slc_looks_up(of)) return false; /* it keeps only lists, which are made again */
    if (array == SLC_KEPT_VALUE) return true;
    if (array == SLC_KEPT_MASTER) return slc_has_master(of);
    return of->trainable && array - SLC_KEPT_STATES < job->states;
}

sluice_status slc_find_kept_array(const slc_job *job, const slc_plan *plan, uint32_t unit, uint32_t array,
                                  slc_kept_array *out)
{
    const slc_strategy strategy = plan->strategies[unit];
    const bool values = array == SLC_KEPT_VALUE, shard = values ? strategy == SLC_FSDP : !slc_updates_whole(strategy);
    const slc_buffer_kind kind = values                     ? shard ? SLC_BUFFER_VALUE_SHARD : SLC_BUFFER_VALUE
                                 : array == SLC_KEPT_MASTER ? SLC_BUFFER_MASTER
                                                            : SLC_BUFFER_STATE;
    const uint32_t index = kind == SLC_BUFFER_STATE ? array - SLC_KEPT_STATES : 0,
                   buffer = slc_plan_buffer(plan, kind, unit, index);
    if (buffer == SLC_NONE)
        return slc_error(SLUICE_ERR_FORMAT, "plan: unit \"%s\" (%s) has no %s", job->units[unit].name,
                         slc_strategy_name(strategy), slc_buffer_kind_name(kind));
    *out = (slc_kept_array){plan->buffers[buffer].offset, shard, slc_buffer_dtype(job, &job->units[unit], kind)};
    return SLUICE_OK;
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

/* Moves an array. A whole array stays whole, and a shard stays a shard; between a whole array and a shard the owned
 * part of each block moves from one layout to the other. */
static void add_array(const route *r, uint32_t u, slc_kept_array from, slc_kept_array to)
{
    const slc_unit *unit = &r->job->units[u];
    uint64_t blocks = slc_unit_blocks(unit), bytes = sluice_dtype_bytes(from.dtype);
    if (!from.shard && !to.shard) {
        add_move(r->t, (slc_move){from.offset, to.offset, bytes * unit->elements});
        return;
    }
    for (uint64_t b = 0; b < blocks; b++) {
        slc_part part = slc_unit_part(unit, r->job->world, b, r->rank);
        add_move(r->t, (slc_move){from.offset + bytes * (from.shard ? part.shard_first : part.first),
                                  to.offset + bytes * (to.shard ? part.shard_first : part.first), bytes * part.count});
    }
    if (from.shard && !to.shard) r->t->gathers[r->t->gather_count++] = (slc_regather){u, to.offset, from.dtype};
}

/* Moves a buffer that only onebit units have, and each rank for itself; a new one is zeroed. */
static void add_private(const route *r, uint32_t before, uint32_t unit, slc_buffer_kind kind, uint32_t index)
{
    uint32_t old = slc_plan_buffer(r->from, kind, before, index), new = slc_plan_buffer(r->to, kind, unit, index);
    if (new == SLC_NONE || !r->to->buffers[new].bytes) return;
    uint64_t offset = r->to->buffers[new].offset, bytes = r->to->buffers[new].bytes;
    if (old == SLC_NONE)
        r->t->zeroed[r->t->zeroed_count++] = (slc_zeroed){offset, bytes};
    else
        add_move(r->t, (slc_move){r->from->buffers[old].offset, offset, bytes});
}

/* ---- Pieces of other units ---- */

/* Moves what this rank keeps of a piece, of which it has everything. */
static void add_piece(const route *r, const slc_unit_piece *piece, slc_kept_array from, slc_kept_array to)
{
    const slc_unit *unit = &r->job->units[piece->unit];
    const uint64_t bytes = sluice_dtype_bytes(from.dtype), end = piece->first + piece->count;
    from.offset += bytes * piece->first_before;
    if (!to.shard) {
        add_move(r->t, (slc_move){from.offset, to.offset + bytes * piece->first, bytes * piece->count});
        return;
    }
    for (uint64_t b = piece->first / unit->block_elements; b * unit->block_elements < end; b++) {
        const slc_part part = slc_unit_part(unit, r->job->world, b, r->rank);
        const uint64_t first = slc_most(part.first, piece->first), last = slc_least(part.first + part.count, end);
        if (first < last)
            add_move(r->t,
                     (slc_move){from.offset + bytes * (first - piece->first),
                                to.offset + bytes * (part.shard_first + (first - part.first)), bytes * (last - first)});
    }
}

static sluice_status add_pieces(const route *r, uint32_t u, uint32_t array, slc_kept_array to)
{
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < r->origins->piece_count; i++) {
        const slc_unit_piece *piece = &r->origins->pieces[i];
        slc_kept_array from = {0};
        if (piece->unit != u) continue;
        status = slc_find_kept_array(r->job_before, r->from, piece->before, array, &from);
        if (!status) add_piece(r, piece, from, to);
    }
    return status;
}

/* Finds whether some part of a unit's array is spread over the ranks before the transition. */
static sluice_status find_spread(const route *r, uint32_t u, uint32_t array, bool *spread)
{
    sluice_status status = SLUICE_OK;
    *spread = false;
    for (size_t i = 0; !status && r->job->world > 1 && i < r->origins->piece_count; i++) {
        slc_kept_array from = {0};
        if (r->origins->pieces[i].unit != u) continue;
        status = slc_find_kept_array(r->job_before, r->from, r->origins->pieces[i].before, array, &from);
        *spread |= from.shard;
    }
    return status;
}

/* ---- Units ---- */

/* The unit of the plan before with the same parameters. */
static uint32_t unit_before(const route *r, uint32_t u)
{
    return r->origins ? r->origins->same[u] : u;
}

static uint32_t count_arrays(const slc_job *job)
{
    return SLC_KEPT_STATES + job->states;
}

static sluice_status add_unit_of_pieces(const route *r, uint32_t u, uint32_t array, slc_kept_array to)
{
    const slc_transition *t = r->t;
    for (size_t c = 0; c < t->collected_count; c++)
        if (t->collected[c].unit == u && t->collected[c].array == array) {
            add_array(r, u, (slc_kept_array){t->collected[c].offset, true, to.dtype}, to);
            return SLUICE_OK;
        }
    return add_pieces(r, u, array, to);
}

static sluice_status add_unit(const route *r, uint32_t u)
{
    const uint32_t before = unit_before(r, u);
    for (uint32_t a = 0; a < count_arrays(r->job); a++) {
        slc_kept_array old = {0}, new = {0};
        if (!slc_has_kept_array(r->job, u, a)) continue;
        sluice_status status = slc_find_kept_array(r->job, r->to, u, a, &new);
        if (!status && before == SLC_NONE)
            status = add_unit_of_pieces(r, u, a, new);
        else if (!status && !(status = slc_find_kept_array(r->job_before, r->from, before, a, &old)))
            add_array(r, u, old, new);
        if (status) return status;
    }
    if (before == SLC_NONE || slc_looks_up(&r->job->units[u])) return SLUICE_OK;
    add_private(r, before, u, SLC_BUFFER_WORKER_ERROR, 0);
    add_private(r, before, u, SLC_BUFFER_SERVER_ERROR, 0);
    for (uint32_t i = 0; i < r->job->local_arrays; i++) add_private(r, before, u, SLC_BUFFER_LOCAL, i);
    return SLUICE_OK;
}

/* ---- Where it is collected ---- */

/* A stretch of the arena. */
typedef struct {
    uint64_t begin, end;
} stretch;

static int by_begin(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Lists what holds nothing between steps: what is not claimed, but for the staging buffer, which collecting itself
 * uses, and gradients. `out` has room for two more than there are statics. */
static size_t list_free(const slc_plan *plan, uint64_t room_bytes, stretch *out)
{
    const uint32_t staging = slc_plan_buffer(plan, SLC_BUFFER_STAGING, SLC_NONE, 0);
    size_t taken = 0, free = 0;
    for (uint32_t i = 0; i < plan->static_count; i++) {
        const slc_buffer *buffer = &plan->buffers[plan->statics[i].buffer];
        if (buffer->kind != SLC_BUFFER_GRADIENT)
            out[taken++] =
                (stretch){buffer->offset + plan->statics[i].first_byte, buffer->offset + plan->statics[i].end_byte};
    }
    if (staging != SLC_NONE)
        out[taken++] =
            (stretch){plan->buffers[staging].offset, plan->buffers[staging].offset + plan->buffers[staging].bytes};
    out[taken++] = (stretch){room_bytes, room_bytes};
    qsort(out, taken, sizeof *out, by_begin);
    uint64_t end = 0;
    for (size_t i = 0; i < taken; i++) { /* there are never more free stretches than taken ones were read */
        const stretch held = out[i];
        const uint64_t begin = slc_round_up(end, 64);
        if (held.begin > begin) out[free++] = (stretch){begin, held.begin};
        end = slc_most(end, held.end);
    }
    return free;
}

/* Gives each array of a new unit room in the first free stretch that has some left. */
static sluice_status place_collected(const route *r)
{
    slc_transition *t = r->t;
    stretch *free_list = calloc((size_t)r->from->static_count + 2, sizeof *free_list);
    if (!free_list) return slc_error(SLUICE_ERR_MEMORY, "what units are made of");
    const size_t count = list_free(r->from, r->room_bytes, free_list);
    sluice_status status = SLUICE_OK;
    for (size_t c = 0; !status && c < t->collected_count; c++) {
        size_t i = 0;
        while (i < count && free_list[i].end - free_list[i].begin < t->collected[c].bytes) i++;
        if (i == count) {
            status =
                slc_error(SLUICE_ERR_MEMORY, "the plan that runs leaves no %llu bytes free for a part of unit \"%s\"",
                          (unsigned long long)t->collected[c].bytes, r->job->units[t->collected[c].unit].name);
            break;
        }
        t->collected[c].offset = free_list[i].begin;
        free_list[i].begin = slc_least(slc_round_up(free_list[i].begin + t->collected[c].bytes, 64), free_list[i].end);
    }
    free(free_list);
    return status;
}

static sluice_status list_collected(const route *r)
{
    slc_transition *t = r->t;
    sluice_status status = SLUICE_OK;
    if (!r->origins) return SLUICE_OK;
    t->collected = calloc((size_t)r->job->unit_count * count_arrays(r->job) + 1, sizeof *t->collected);
    if (!t->collected) return slc_error(SLUICE_ERR_MEMORY, "what units are made of");
    for (uint32_t u = 0; !status && u < r->job->unit_count; u++)
        for (uint32_t a = 0; !status && r->origins->same[u] == SLC_NONE && a < count_arrays(r->job); a++) {
            bool spread = false;
            const slc_unit *unit = &r->job->units[u];
            const uint64_t bytes = sluice_dtype_bytes(a == SLC_KEPT_VALUE ? unit->dtype : SLUICE_FP32);
            if (slc_has_kept_array(r->job, u, a)) status = find_spread(r, u, a, &spread);
            if (spread)
                t->collected[t->collected_count++] =
                    (slc_collected_array){u, a, 0, bytes * unit->elements / r->job->world};
        }
    return status ? status : place_collected(r);
}

/* ---- All of it ---- */

static sluice_status make_transition(const route *r)
{
    const slc_job *job = r->job;
    uint64_t private = 2 + job->local_arrays, arrays = count_arrays(job) + private;
    uint64_t blocks = r->origins ? r->origins->piece_count : 0;
    for (uint32_t u = 0; u < job->unit_count; u++) blocks += slc_unit_blocks(&job->units[u]);
    *r->t = (slc_transition){.moves = calloc(arrays * blocks + 1, sizeof *r->t->moves),
                             .gathers = calloc(arrays * job->unit_count + 1, sizeof *r->t->gathers),
                             .zeroed = calloc(private * job->unit_count + 1, sizeof *r->t->zeroed)};
    sluice_status status = SLUICE_OK;
    if (!r->t->moves || !r->t->gathers || !r->t->zeroed)
        status = slc_error(SLUICE_ERR_MEMORY, "transition of %llu blocks", (unsigned long long)blocks);
    if (!status) status = list_collected(r);
    for (uint32_t u = 0; !status && u < job->unit_count; u++) status = add_unit(r, u);
    if (status) slc_transition_fini(r->t);
    return status;
}

sluice_status slc_transition_init(const slc_job *job, const slc_plan *from, const slc_plan *to, uint32_t rank,
                                  slc_transition *out)
{
    return make_transition(&(route){job, job, NULL, from, to, 0, rank, out});
}

sluice_status slc_transition_regroup(const slc_job *job, const slc_unit_origins *origins, const slc_plan *from,
                                     const slc_plan *to, uint64_t room_bytes, uint32_t rank, slc_transition *out)
{
    return make_transition(&(route){job, origins->job_before, origins, from, to, room_bytes, rank, out});
}

void slc_transition_fini(slc_transition *transition)
{
    free(transition->collected);
    free(transition->moves);
    free(transition->gathers);
    free(transition->zeroed);
    slc_segment_destroy(&transition->larger);
    *transition = (slc_transition){0};
}
