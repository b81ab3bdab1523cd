/* The validator's view of memory over time. Lanes run side by side: that a claim spans an item in the order is not
 * enough, it must have begun when the item starts and may not end before the item does. */
#include "lib/plan/judge.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { RESIDENT = UINT32_MAX - 1 }; /* instead of a claim's number */

typedef struct {
    const slc_judge *j;
    uint32_t **first; /* of each kind: buffers, by unit (or by index where there is no unit), chained by `next` */
    uint32_t *next;
    uint32_t *by_buffer; /* claims, those of a buffer together, in order */
    uint32_t *end;       /* of each buffer in by_buffer */
    bool *resident;      /* each buffer */
} memory;

static uint32_t keys_of(const slc_job *job)
{
    uint32_t most = job->unit_count > job->activation_count ? job->unit_count : job->activation_count;
    return (most > job->workspace_count ? most : job->workspace_count) + 1;
}

static uint32_t find_buffer(const memory *m, slc_buffer_kind kind, uint32_t unit, uint32_t index)
{
    uint32_t b = m->first[kind][unit == SLC_NONE ? index : unit];
    while (b != SLC_NONE && (m->j->plan->buffers[b].unit != unit || m->j->plan->buffers[b].index != index))
        b = m->next[b];
    return b;
}

/* ---- A claim that is there while an item runs ---- */

static bool same_lane(const slc_judge *j, uint32_t a, uint32_t b)
{
    return slc_judge_is_slot(j, a) == slc_judge_is_slot(j, b);
}

static bool holds_during(const slc_judge *j, const slc_claim *claim, uint32_t item)
{
    if (item < claim->from || claim->to < item) return false;
    bool begun = same_lane(j, claim->from, item) || slc_judge_surely_over(j, item, claim->from, false);
    bool lasts = same_lane(j, claim->to, item) || slc_judge_surely_over(j, claim->to, item, false);
    return begun && lasts;
}

/* The claim that holds all of a buffer while `item` runs; SLC_NONE: none surely does. */
static uint32_t holder(const memory *m, slc_buffer_kind kind, uint32_t unit, uint32_t index, uint32_t item)
{
    uint32_t b = find_buffer(m, kind, unit, index);
    if (b == SLC_NONE) return SLC_NONE;
    if (m->resident[b]) return RESIDENT;
    uint32_t low = b ? m->end[b - 1] : 0, high = m->end[b];
    while (low < high) { /* the last one that begins at or before the item */
        uint32_t middle = (low + high) / 2;
        if (m->j->program->claims[m->by_buffer[middle]].from <= item)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == (b ? m->end[b - 1] : 0)) return SLC_NONE;
    const slc_claim *claim = &m->j->program->claims[m->by_buffer[low - 1]];
    bool whole = !claim->first_byte && claim->end_byte == m->j->plan->buffers[b].bytes;
    return whole && holds_during(m->j, claim, item) ? m->by_buffer[low - 1] : SLC_NONE;
}

/* Does one claim hold the buffer while both items run, and so between them? */
static bool lives(const memory *m, slc_buffer_kind kind, uint32_t unit, uint32_t index, uint32_t first, uint32_t last)
{
    uint32_t claim = holder(m, kind, unit, index, last);
    return claim != SLC_NONE && claim == holder(m, kind, unit, index, first);
}

/* ---- What items touch ---- */

static bool has_reduced(const memory *m, uint32_t u)
{
    return find_buffer(m, SLC_BUFFER_REDUCED, u, 0) != SLC_NONE;
}

static uint32_t first_writer_of_gradient(const memory *m, uint32_t u, uint32_t micro_batch)
{
    uint32_t first, last;
    slc_unit_gradient_slots(m->j->job, &m->j->job->units[u], &first, &last);
    return slc_judge_slot_item(m->j, m->j->job->each ? micro_batch : 0, first);
}

static bool gradient_lives(const memory *m, uint32_t i)
{
    const slc_item *item = &m->j->program->items[i];
    return lives(m, SLC_BUFFER_GRADIENT, item->unit, 0, first_writer_of_gradient(m, item->unit, item->micro_batch), i);
}

/* From the first reduction into it on. */
static bool reduced_lives(const memory *m, uint32_t i)
{
    const slc_item *items = m->j->program->items;
    for (uint32_t k = 0; k <= i; k++)
        if (items[k].kind == SLC_ITEM_REDUCE_SCATTER && items[k].unit == items[i].unit)
            return lives(m, SLC_BUFFER_REDUCED, items[i].unit, 0, k, i);
    return false;
}

static sluice_status check_slot_of_unit(const memory *m, uint32_t i, uint32_t u)
{
    const slc_judge *j = m->j;
    const slc_item *item = &j->program->items[i];
    const slc_unit *unit = &j->job->units[u];
    slc_window window;
    for (uint32_t w = 0; j->plan->strategies[u] == SLC_FSDP && slc_unit_window(j->job, unit, !j->evaluate, w, &window);
         w++)
        if (window.first_slot <= item->slot && item->slot <= window.last_slot &&
            !lives(m, SLC_BUFFER_GATHERED, u, w, slc_judge_slot_item(j, item->micro_batch, window.first_slot), i))
            return slc_judge_fault(j, i, "gathered values are not in memory");
    if (slc_slot_is_forward(j->job, item->slot) || !unit->trainable) return SLUICE_OK;
    for (uint32_t n = 0; n < unit->use_count; n++)
        if (unit->uses[n].layer == slc_slot_layer(j->job, item->slot) &&
            !lives(m, SLC_BUFFER_GRADIENT, u, 0, first_writer_of_gradient(m, u, item->micro_batch), i))
            return slc_judge_fault(j, i, "its gradient is not in memory");
    return SLUICE_OK;
}

static sluice_status check_slot(const memory *m, uint32_t i)
{
    const slc_judge *j = m->j;
    sluice_status status = SLUICE_OK;
    for (uint32_t u = 0; !status && u < j->job->unit_count; u++) status = check_slot_of_unit(m, i, u);
    for (uint32_t w = 0; !status && w < j->job->workspace_count; w++)
        if (j->job->workspaces[w].layer == slc_slot_layer(j->job, j->program->items[i].slot) &&
            holder(m, SLC_BUFFER_WORKSPACE, SLC_NONE, w, i) == SLC_NONE)
            status = slc_judge_fault(j, i, "a workspace is not in memory");
    return status;
}

static sluice_status check_window_gather(const memory *m, uint32_t i)
{
    const slc_judge *j = m->j;
    const slc_item *item = &j->program->items[i];
    slc_window window;
    bool ok = slc_unit_window(j->job, &j->job->units[item->unit], !j->evaluate, item->index, &window) &&
              lives(m, SLC_BUFFER_GATHERED, item->unit, item->index, i,
                    slc_judge_slot_item(j, item->micro_batch, window.last_slot));
    return ok ? SLUICE_OK : slc_judge_fault(j, i, "what it gathers does not stay in memory for its window");
}

static sluice_status check_item(const memory *m, uint32_t i)
{
    const slc_item *item = &m->j->program->items[i];
    bool ok = true;
    switch (item->kind) {
    case SLC_ITEM_SLOT: return check_slot(m, i);
    case SLC_ITEM_REDUCE_SCATTER:
        ok = gradient_lives(m, i) && (!has_reduced(m, item->unit) || reduced_lives(m, i));
        break;
    case SLC_ITEM_ALL_REDUCE: ok = gradient_lives(m, i); break;
    case SLC_ITEM_GATHER_GRADIENT: ok = gradient_lives(m, i) && reduced_lives(m, i); break;
    case SLC_ITEM_UPDATE:
        ok = has_reduced(m, item->unit) && m->j->plan->strategies[item->unit] != SLC_DP ? reduced_lives(m, i)
                                                                                        : gradient_lives(m, i);
        break;
    case SLC_ITEM_GATHER_WINDOW: return check_window_gather(m, i);
    default: break;
    }
    return ok ? SLUICE_OK : slc_judge_fault(m->j, i, "a buffer that it touches is not in memory");
}

static sluice_status check_activations(const memory *m)
{
    const slc_judge *j = m->j;
    for (uint32_t a = 0; a < j->job->activation_count; a++) {
        const slc_activation_life *life = &j->job->activations[a];
        uint32_t last = j->evaluate ? life->last_forward_slot : life->last_slot;
        if (last < life->first_slot || (j->evaluate && last >= j->job->layer_count)) continue;
        for (uint32_t n = 0; n < (j->evaluate ? 1 : j->job->micro_batches); n++) {
            uint32_t end = slc_judge_slot_item(j, n, last);
            if (!lives(m, SLC_BUFFER_ACTIVATION, SLC_NONE, a, slc_judge_slot_item(j, n, life->first_slot), end))
                return slc_judge_fault(j, end, "an activation is not in memory from its first slot to its last");
        }
    }
    return SLUICE_OK;
}

/* ---- Addresses over time ---- */

/* The claim that held each stretch of addresses last. It is enough to look at that one: it has waited for those before
 * it, and its end proves its start. */
typedef struct {
    uint64_t *edges;
    size_t edge_count;
    uint32_t *claim; /* SLC_NONE: nobody's; RESIDENT */
} timeline;

static uint64_t at(const slc_plan *plan, const slc_claim *claim, uint64_t byte)
{
    return plan->buffers[claim->buffer].offset + byte;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static size_t edge_of(const timeline *t, uint64_t address)
{
    size_t low = 0, high = t->edge_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->edges[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void occupy(timeline *t, const slc_plan *plan, const slc_claim *claim, uint32_t number)
{
    size_t last = edge_of(t, at(plan, claim, claim->end_byte));
    for (size_t s = edge_of(t, at(plan, claim, claim->first_byte)); s < last; s++) t->claim[s] = number;
}

static void timeline_fini(timeline *t)
{
    free(t->claim);
    free(t->edges);
}

static sluice_status timeline_init(timeline *t, const slc_plan *plan, const slc_program *program)
{
    size_t room = 2 * ((size_t)program->claim_count + plan->static_count) + 1, count = 0;
    *t = (timeline){.edges = malloc(room * sizeof *t->edges), .claim = malloc(room * sizeof *t->claim)};
    if (!t->edges || !t->claim) {
        timeline_fini(t);
        return slc_error(SLUICE_ERR_MEMORY, "validator");
    }
    for (size_t c = 0; c < (size_t)program->claim_count + plan->static_count; c++) {
        const slc_claim *claim = c < plan->static_count ? &plan->statics[c] : &program->claims[c - plan->static_count];
        t->edges[count++] = at(plan, claim, claim->first_byte);
        t->edges[count++] = at(plan, claim, claim->end_byte);
    }
    if (count) qsort(t->edges, count, sizeof *t->edges, ascending);
    for (size_t i = 0; i < count; i++)
        if (!t->edge_count || t->edges[t->edge_count - 1] != t->edges[i]) t->edges[t->edge_count++] = t->edges[i];
    for (size_t s = 0; s < t->edge_count; s++) t->claim[s] = SLC_NONE;
    return SLUICE_OK;
}

static sluice_status check_claim(const slc_judge *j, const timeline *t, uint32_t number)
{
    const slc_claim *mine = &j->program->claims[number];
    size_t last = edge_of(t, at(j->plan, mine, mine->end_byte));
    for (size_t s = edge_of(t, at(j->plan, mine, mine->first_byte)); s < last; s++) {
        uint32_t before = t->claim[s];
        if (before == SLC_NONE) continue;
        if (before == RESIDENT) return slc_judge_fault(j, mine->from, "a claim over resident memory");
        bool previous = before >= number; /* not made yet in this step */
        uint32_t end = j->program->claims[before].to;
        if (!previous && end >= mine->from)
            return slc_judge_fault(j, mine->from, "two claims overlap in address and time");
        if (!slc_judge_surely_over(j, mine->from, end, previous))
            return slc_judge_fault(j, mine->from,
                                   previous ? "claims memory that the step before may still hold: a ticket is missing"
                                            : "claims memory that an earlier item may still hold: a ticket is missing");
    }
    return SLUICE_OK;
}

/* First as the step before left it, then through the step. */
static sluice_status check_timeline(const slc_judge *j)
{
    timeline t;
    sluice_status status = timeline_init(&t, j->plan, j->program);
    if (status) return status;
    const slc_claim *claims = j->program->claims;
    for (uint32_t c = 0; c < j->program->claim_count; c++) occupy(&t, j->plan, &claims[c], c);
    for (uint32_t s = 0; s < j->plan->static_count; s++) occupy(&t, j->plan, &j->plan->statics[s], RESIDENT);
    for (uint32_t c = 0; !status && c < j->program->claim_count; c++) {
        status = check_claim(j, &t, c);
        occupy(&t, j->plan, &claims[c], c);
    }
    timeline_fini(&t);
    return status;
}

/* ---- All together ---- */

static sluice_status check_claim_form(const slc_judge *j)
{
    const slc_claim *claims = j->program->claims;
    for (uint32_t c = 0; c < j->program->claim_count; c++) {
        const slc_claim *claim = &claims[c];
        if (claim->buffer >= j->plan->buffer_count || claim->from > claim->to || claim->to >= j->program->item_count ||
            (c && claim->from < claims[c - 1].from))
            return slc_error(SLUICE_ERR_FORMAT,
                             "invalid plan: %s: claim %u is of no buffer, outside of the order or "
                             "not sorted",
                             j->where, c);
        const slc_buffer *buffer = &j->plan->buffers[claim->buffer];
        if (claim->first_byte > claim->end_byte || claim->end_byte > buffer->bytes ||
            buffer->offset > j->plan->arena_bytes || claim->end_byte > j->plan->arena_bytes - buffer->offset)
            return slc_judge_fault(j, claim->from, "a claim beyond its buffer or the arena");
        if (!same_lane(j, claim->from, claim->to) && !slc_judge_surely_over(j, claim->to, claim->from, false))
            return slc_judge_fault(j, claim->to, "may release memory before it is claimed");
    }
    return SLUICE_OK;
}

static void index_buffers(memory *m, uint32_t *cells)
{
    const slc_plan *plan = m->j->plan;
    uint32_t keys = keys_of(m->j->job);
    for (uint32_t k = 0; k < SLC_BUFFER_KINDS * keys; k++) cells[k] = SLC_NONE;
    for (uint32_t k = 0; k < SLC_BUFFER_KINDS; k++) m->first[k] = cells + (size_t)k * keys;
    for (uint32_t b = plan->buffer_count; b-- > 0;) {
        const slc_buffer *buffer = &plan->buffers[b];
        uint32_t key = buffer->unit == SLC_NONE ? buffer->index : buffer->unit;
        m->next[b] = SLC_NONE;
        if ((unsigned)buffer->kind >= SLC_BUFFER_KINDS || key >= keys) continue;
        m->next[b] = m->first[buffer->kind][key];
        m->first[buffer->kind][key] = b;
    }
    for (uint32_t s = 0; s < plan->static_count; s++) m->resident[plan->statics[s].buffer] = true;
}

static void index_claims(memory *m)
{
    const slc_program *program = m->j->program;
    for (uint32_t c = 0; c < program->claim_count; c++) m->end[program->claims[c].buffer]++;
    for (uint32_t b = 1; b < m->j->plan->buffer_count; b++) m->end[b] += m->end[b - 1];
    for (uint32_t c = program->claim_count; c-- > 0;) m->by_buffer[--m->end[program->claims[c].buffer]] = c;
    /* `end` now holds beginnings: move them on by one buffer. */
    uint32_t buffers = m->j->plan->buffer_count;
    if (!buffers) return;
    memmove(m->end, m->end + 1, (buffers - 1) * sizeof *m->end);
    m->end[buffers - 1] = program->claim_count;
}

sluice_status slc_judge_memory(const slc_judge *j)
{
    sluice_status status = check_claim_form(j);
    if (status) return status;
    size_t buffers = (size_t)j->plan->buffer_count + 1;
    uint32_t *kinds[SLC_BUFFER_KINDS];
    uint32_t *cells = malloc((size_t)SLC_BUFFER_KINDS * keys_of(j->job) * sizeof *cells);
    memory m = {.j = j,
                .first = kinds,
                .next = calloc(buffers, sizeof *m.next),
                .by_buffer = calloc((size_t)j->program->claim_count + 1, sizeof *m.by_buffer),
                .end = calloc(buffers, sizeof *m.end),
                .resident = calloc(buffers, sizeof *m.resident)};
    if (!cells || !m.next || !m.by_buffer || !m.end || !m.resident) {
        status = slc_error(SLUICE_ERR_MEMORY, "validator");
        goto out;
    }
    index_buffers(&m, cells);
    index_claims(&m);
    for (uint32_t i = 0; !status && i < j->program->item_count; i++) status = check_item(&m, i);
    if (!status) status = check_activations(&m);
    if (!status) status = check_timeline(j);

out:
    free(m.resident);
    free(m.end);
    free(m.by_buffer);
    free(m.next);
    free(cells);
    return status;
}
