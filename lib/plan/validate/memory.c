/* The validator's check of memory. Lanes run at the same time, so it is not enough that a claim spans an item in the
 * order: the claim must have begun when the item starts, and may not end before the item does. Claims are ranges of
 * bytes, so each need is covered piece by piece.
 * validate_split_test.c and tests/plan/validate_test.c cover this file. */
#include "lib/plan/validate/parts.h"

#include "lib/base/bisect.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

typedef struct {
    const slc_validation *j;
    int pass;            /* the pass that is checked */
    uint32_t *by_buffer; /* [claims] claims sorted by buffer, in order */
    uint32_t *start;     /* [buffers + 1] where each buffer's claims begin in by_buffer */
} memory;

/* ---- A claim that is there while items run ---- */

/* Returns true if the claim made in pass `made` holds while `first` (of pass `first_pass`) and `last` (of the pass that
 * is checked) run, and so in between. */
static bool spans(const memory *m, const slc_claim *claim, int made, int first_pass, uint32_t first, uint32_t last)
{
    const slc_validation *j = m->j;
    int end = made + slc_claim_wraps(j->program, claim);
    if (!slc_validate_runs(j, made, claim->from)) return false;
    if (made > first_pass || (made == first_pass && claim->from > first)) return false;
    if (end < m->pass || (end == m->pass && claim->to < last)) return false;
    bool begun = slc_validate_same_lane(j, claim->from, first) ||
                 slc_validate_surely_over(j, first_pass, first, made, claim->from);
    if (!begun || slc_validate_same_lane(j, claim->to, last)) return begun;
    int beyond = end > 1; /* passes repeat: what holds for these two passes was derived for the two before them */
    return slc_validate_surely_over(j, end - beyond, claim->to, m->pass - beyond, last);
}

/* Returns the index after a buffer's last claim that begins at or before `item`. */
static uint32_t claims_until(const memory *m, uint32_t b, uint32_t item)
{
    SLC_BISECT(uint32_t, low, m->start[b], m->start[b + 1], m->j->program->claims[m->by_buffer[low]].from <= item);
    return low;
}

/* Finds one claim that holds this buffer's bytes from `byte` on while `first` and `last` run, and returns where that
 * claim ends; `byte`: there is none. */
static uint64_t held_from(const memory *m, uint32_t b, uint64_t byte, int first_pass, uint32_t first, uint32_t last)
{
    for (int made = first_pass; made >= 0 && made >= first_pass - 1; made--)
        for (uint32_t c = made == first_pass ? claims_until(m, b, first) : m->start[b + 1]; c-- > m->start[b];) {
            const slc_claim *claim =
                &m->j->program->claims[m->by_buffer[c]]; /* from the latest on, which are the likeliest */
            if (claim->first_byte <= byte && byte < claim->end_byte && spans(m, claim, made, first_pass, first, last))
                return claim->end_byte;
        }
    return byte;
}

/* Returns true if bytes [first_byte, end_byte) of a buffer are in memory from `first` to `last`, two items of one step,
 * each byte by one claim. If `first` does not run, there is nothing to keep. */
static bool lives(const memory *m, uint32_t b, uint64_t first_byte, uint64_t end_byte, uint32_t first, uint32_t last)
{
    const slc_item *items = m->j->program->items;
    int first_pass = m->pass - items[last].late + items[first].late;
    if (b == SLC_NONE || first_pass > m->pass) return false;
    if (m->j->buffers->resident[b] || first_pass < 0 || !slc_validate_runs(m->j, first_pass, first)) return true;
    while (first_byte < end_byte) {
        uint64_t held = held_from(m, b, first_byte, first_pass, first, last);
        if (held == first_byte) return false;
        first_byte = held;
    }
    return true;
}

static bool whole_lives(const memory *m, uint32_t b, uint32_t first, uint32_t last)
{
    return b != SLC_NONE && lives(m, b, 0, m->j->plan->buffers[b].bytes, first, last);
}

static uint32_t find(const memory *m, slc_buffer_kind kind, uint32_t unit, uint32_t index)
{
    return slc_buffer_index_find(m->j->buffers, kind, unit, index);
}

/* ---- What items touch ---- */

/* Checks the gradient of an operation's blocks, from the first slot that adds to it. */
static bool gradient_lives(const memory *m, uint32_t i)
{
    const slc_item *item = &m->j->program->items[i];
    const slc_unit *unit = &m->j->job->units[item->unit];
    uint32_t first, last;
    slc_unit_gradient_slots(m->j->job, unit, &first, &last);
    return lives(m, find(m, SLC_BUFFER_GRADIENT, item->unit, 0),
                 slc_block_byte(m->j->job, unit, SLC_BUFFER_GRADIENT, false, item->first_block),
                 slc_block_byte(m->j->job, unit, SLC_BUFFER_GRADIENT, false, item->first_block + item->block_count),
                 slc_validate_slot_item(m->j, m->j->job->each ? item->micro_batch : 0, first), i);
}

/* Checks the sum of blocks [first_block, end) of a unit, from the first reduction into it until `i`. */
static bool sum_lives(const memory *m, uint32_t u, uint64_t first_block, uint64_t end, uint32_t i)
{
    const slc_job *job = m->j->job;
    const slc_unit *unit = &job->units[u];
    uint32_t buffer = find(m, SLC_BUFFER_REDUCED, u, 0);
    bool shard = !slc_operations_of(job, unit, m->j->plan->strategies[u]).whole_sum;
    slc_block_runs list =
        slc_validate_list(m->j, SLC_ITEM_REDUCE_SCATTER, job->each ? 0 : job->micro_batches - 1, u, 0);
    for (uint32_t r = slc_block_run_at(list, first_block); r < list.count && list.at[r].first_block < end; r++) {
        const slc_block_run *writer = &list.at[r];
        uint64_t from = writer->first_block > first_block ? writer->first_block : first_block;
        uint64_t to = writer->end_block < end ? writer->end_block : end;
        if (!lives(m, buffer, slc_block_byte(job, unit, SLC_BUFFER_REDUCED, shard, from),
                   slc_block_byte(job, unit, SLC_BUFFER_REDUCED, shard, to), writer->item, i))
            return false;
    }
    return true;
}

static bool reduced_lives(const memory *m, uint32_t i)
{
    const slc_item *item = &m->j->program->items[i];
    return sum_lives(m, item->unit, item->first_block, item->first_block + item->block_count, i);
}

/* True if the partner's whole sum is in memory while item i adds the gradients of rows to it: in its REDUCED buffer, or
 * where its gradient is. */
static bool partner_lives(const memory *m, uint32_t i)
{
    uint32_t u = m->j->job->units[m->j->program->items[i].unit].partner;
    const slc_unit *unit = &m->j->job->units[u];
    slc_strategy strategy = m->j->plan->strategies[u];
    return slc_operations_of(m->j->job, unit, strategy).moves_sum
               ? sum_lives(m, u, 0, slc_unit_blocks(unit), i)
               : whole_lives(m, find(m, SLC_BUFFER_GRADIENT, u, 0), i, i);
}

/* Checks a buffer that one operation of a onebit unit leaves for the next. */
static bool left_lives(const memory *m, slc_buffer_kind kind, slc_item_kind writer, uint32_t i)
{
    const slc_validation *j = m->j;
    uint32_t u = j->program->items[i].unit;
    slc_block_runs list = slc_validate_list(j, writer, j->micro_batches - 1, u, 0);
    return list.count == 1 && whole_lives(m, find(m, kind, u, 0), list.at[0].item, i);
}

/* Returns true if the update reads the sum from a REDUCED buffer. */
static bool update_reads_reduced(const memory *m, uint32_t u)
{
    slc_unit_operations of = slc_operations_of(m->j->job, &m->j->job->units[u], m->j->plan->strategies[u]);
    return of.whole_sum || (of.moves_sum && m->j->plan->strategies[u] != SLC_DP);
}

/* True if what update i reads is in memory. An update of a onebit unit reads the results of the exchange, and the
 * gradient in steps that do not exchange. */
static bool update_reads_live(const memory *m, uint32_t i)
{
    uint32_t u = m->j->program->items[i].unit;
    if (update_reads_reduced(m, u)) return reduced_lives(m, i);
    return gradient_lives(m, i) &&
           (m->j->plan->strategies[u] != SLC_ONEBIT || left_lives(m, SLC_BUFFER_RESULTS, SLC_ITEM_EXCHANGE, i));
}

/* Checks until the window's last slot, which covers the window's slots before it. */
static bool gathered_lives(const memory *m, uint32_t i)
{
    const slc_validation *j = m->j;
    const slc_item *item = &j->program->items[i];
    const slc_unit *unit = &j->job->units[item->unit];
    slc_window window;
    return slc_unit_window(j->job, unit, !j->evaluate, item->index, &window) &&
           lives(m,
                 find(m, SLC_BUFFER_GATHERED, item->unit,
                      slc_gathered_number(j->job, unit, item->micro_batch, item->index)),
                 slc_block_byte(j->job, unit, SLC_BUFFER_GATHERED, false, item->first_block),
                 slc_block_byte(j->job, unit, SLC_BUFFER_GATHERED, false, item->first_block + item->block_count), i,
                 slc_validate_slot_item(j, slc_gathered_until(j->job, unit, j->evaluate, item->micro_batch),
                                        window.last_slot));
}

static bool workspaces_live(const memory *m, uint32_t i)
{
    const slc_validation *j = m->j;
    uint32_t slot = j->program->items[i].slot;
    for (uint32_t w = j->workspace_start[slot]; w < j->workspace_start[slot + 1]; w++)
        if (!whole_lives(m, find(m, SLC_BUFFER_WORKSPACE, SLC_NONE, j->workspaces[w]), i, i)) return false;
    return true;
}

/* Slots between the first and the last that add to a gradient need no check: the reductions require the same claims
 * from the first slot on. */
static sluice_status check_item(const memory *m, uint32_t i)
{
    const slc_item *item = &m->j->program->items[i];
    bool ok = true;
    switch (item->kind) {
    case SLC_ITEM_SLOT:
        if (!workspaces_live(m, i)) return slc_validate_fault(m->j, i, "a workspace is not in memory");
        break;
    case SLC_ITEM_REDUCE_SCATTER:
    case SLC_ITEM_ALL_REDUCE:
        ok = gradient_lives(m, i) && (m->j->job->units[item->unit].role != SLC_UNIT_ROWS || partner_lives(m, i));
        break;
    case SLC_ITEM_GATHER_GRADIENT: ok = gradient_lives(m, i) && reduced_lives(m, i); break;
    case SLC_ITEM_UPDATE: ok = update_reads_live(m, i); break;
    case SLC_ITEM_INSPECT:
    case SLC_ITEM_COMPRESS: ok = gradient_lives(m, i); break;
    case SLC_ITEM_EXCHANGE: ok = left_lives(m, SLC_BUFFER_PACKETS, SLC_ITEM_COMPRESS, i); break;
    case SLC_ITEM_GATHER_WINDOW:
        if (!gathered_lives(m, i))
            return slc_validate_fault(m->j, i, "what it gathers does not stay in memory for its window");
        break;
    default: break;
    }
    return ok ? SLUICE_OK : slc_validate_fault(m->j, i, "a buffer that it touches is not in memory from its writer on");
}

static bool is_dropped(const slc_validation *j, const slc_activation_life *life)
{
    uint32_t layer = slc_slot_layer(j->job, life->first_slot);
    return life->recomputable && slc_validate_recomputes(j, layer) && slc_slot_is_forward(j->job, life->first_slot) &&
           life->last_slot == slc_backward_slot(j->job, layer);
}

static bool activation_lives(const memory *m, uint32_t a, uint32_t last_slot, uint32_t micro_batch)
{
    const slc_activation_life *life = &m->j->job->activations[a];
    const slc_activation_turn *turn = m->j->job->turns ? &m->j->job->turns[a] : NULL;
    uint32_t buffer = find(m, SLC_BUFFER_ACTIVATION, SLC_NONE, a);
    uint32_t first = slc_validate_slot_item(m->j, micro_batch, life->first_slot);
    uint32_t last = slc_validate_slot_item(m->j, micro_batch, last_slot);
    if (turn && !slc_turn_has(turn, micro_batch)) return true; /* it is in another one */
    if (turn && turn->receive && m->j->message_item)
        first = slc_validate_message_item(m->j, turn->receive - 1, micro_batch);
    if (turn && turn->send && m->j->message_item &&
        !whole_lives(m, buffer, first, slc_validate_message_item(m->j, turn->send - 1, micro_batch)))
        return false;
    if (is_dropped(m->j, life)) return whole_lives(m, buffer, first, first) && whole_lives(m, buffer, last, last);
    return whole_lives(m, buffer, first, last);
}

static sluice_status check_activations(const memory *m)
{
    const slc_validation *j = m->j;
    if (j->passes[m->pass] == SLC_PASS_DRAIN) return SLUICE_OK;
    for (uint32_t a = 0; a < j->job->activation_count; a++) {
        const slc_activation_life *life = &j->job->activations[a];
        uint32_t last = j->evaluate ? life->last_forward_slot : life->last_slot;
        if (last < life->first_slot || (j->evaluate && last >= j->job->layer_count)) continue;
        for (uint32_t n = 0; n < j->micro_batches; n++)
            if (!activation_lives(m, a, last, n))
                return slc_validate_fault(j, slc_validate_slot_item(j, n, last),
                                          "an activation is not in memory from its first slot to its last");
    }
    return SLUICE_OK;
}

/* Checks that a claim which is made in one lane and released in the other is made before it is released. */
static sluice_status check_releases(const memory *m)
{
    const slc_validation *j = m->j;
    for (uint32_t c = 0; c < j->program->claim_count; c++) {
        const slc_claim *claim = &j->program->claims[c];
        int made = m->pass - slc_claim_wraps(j->program, claim);
        if (slc_validate_same_lane(j, claim->from, claim->to) || !slc_validate_runs(j, m->pass, claim->to)) continue;
        if (!slc_validate_surely_over(j, m->pass, claim->to, made, claim->from))
            return slc_validate_fault(j, claim->to, "may release memory before it is claimed");
    }
    return SLUICE_OK;
}

static void index_claims(memory *m)
{
    const slc_program *program = m->j->program;
    uint32_t buffers = m->j->plan->buffer_count;
    for (uint32_t c = 0; c < program->claim_count; c++) m->start[program->claims[c].buffer + 1]++;
    for (uint32_t b = 0; b < buffers; b++) m->start[b + 1] += m->start[b];
    for (uint32_t c = program->claim_count; c-- > 0;) { /* fills each buffer's part from its end; `start` counts down */
        uint32_t b = program->claims[c].buffer;
        m->by_buffer[--m->start[b + 1]] = c;
    }
    /* now start[b + 1] is where b begins: shift by one */
    for (uint32_t b = 0; b < buffers; b++) m->start[b] = m->start[b + 1];
    m->start[buffers] = program->claim_count;
}

sluice_status slc_validate_memory(const slc_validation *j, int pass)
{
    sluice_status status = SLUICE_OK;
    memory m = {.j = j,
                .pass = pass,
                .by_buffer = calloc((size_t)j->program->claim_count + 1, sizeof *m.by_buffer),
                .start = calloc((size_t)j->plan->buffer_count + 1, sizeof *m.start)};
    if (m.by_buffer && m.start) {
        index_claims(&m);
        status = check_releases(&m);
        for (uint32_t i = 0; !status && i < j->program->item_count; i++)
            if (slc_validate_runs(j, pass, i)) status = check_item(&m, i);
        if (!status) status = check_activations(&m);
    } else {
        status = slc_error(SLUICE_ERR_MEMORY, "validator");
    }
    free(m.start);
    free(m.by_buffer);
    return status;
}

/* ---- Claims by themselves ---- */

static sluice_status check_claim(const slc_validation *j, uint32_t c)
{
    const slc_claim *claim = &j->program->claims[c];
    uint32_t count = j->program->item_count;
    if (claim->buffer >= j->plan->buffer_count || claim->from >= count || claim->to >= count ||
        (c && claim->from < claim[-1].from))
        return slc_error(SLUICE_ERR_FORMAT,
                         "invalid plan: %s: claim %u is of no buffer, outside of the order or not sorted", j->where, c);
    const slc_buffer *buffer = &j->plan->buffers[claim->buffer];
    if (claim->first_byte > claim->end_byte || claim->end_byte > buffer->bytes ||
        buffer->offset > j->plan->arena_bytes || claim->end_byte > j->plan->arena_bytes - buffer->offset)
        return slc_validate_fault(j, claim->from, "a claim beyond its buffer or the arena");
    bool wraps = slc_claim_wraps(j->program, claim);
    if (j->program->items[claim->from].late && !j->program->items[claim->to].late)
        return slc_validate_fault(j, claim->from, "a late claim that an item releases which is not late");
    if (!wraps && claim->from > claim->to)
        return slc_validate_fault(j, claim->from, "a claim that ends before it begins");
    if (wraps && claim->from <= claim->to)
        return slc_validate_fault(j, claim->from, "claims what a late item releases only after the next claim");
    return SLUICE_OK;
}

sluice_status slc_validate_claims(const slc_validation *j)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t c = 0; !status && c < j->program->claim_count; c++) status = check_claim(j, c);
    return status;
}
