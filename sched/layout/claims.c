/* From the order of a program to lifetimes: when each transient buffer is claimed and released, run by run of
 * blocks. tests/plan/validate_test.c covers this file. */
#include "sched/layout/parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    slc_program *program;
    const slc_places *places;
    uint32_t capacity;
    bool failed;
} claims;

static void claim_bytes(claims *c, uint32_t buffer, uint64_t first_byte, uint64_t end_byte, uint32_t from, uint32_t to)
{
    slc_program *program = c->program;
    if (program->claim_count == c->capacity) {
        uint32_t capacity = c->capacity ? 2 * c->capacity : 64;
        slc_claim *grown = realloc(program->claims, capacity * sizeof *grown);
        if (!grown) {
            c->failed = true;
            return;
        }
        program->claims = grown;
        c->capacity = capacity;
    }
    program->claims[program->claim_count++] = (slc_claim){buffer, first_byte, end_byte, from, to};
}

static void claim_whole(claims *c, uint32_t buffer, uint32_t from, uint32_t to)
{
    claim_bytes(c, buffer, 0, c->plan->buffers[buffer].bytes, from, to);
}

static void claim_blocks(claims *c, uint32_t buffer, uint64_t first_block, uint64_t end_block, bool shard,
                         uint32_t from, uint32_t to)
{
    const slc_buffer *b = &c->plan->buffers[buffer];
    const slc_unit *unit = &c->job->units[b->unit];
    claim_bytes(c, buffer, slc_block_byte(c->job, unit, b->kind, shard, first_block),
                slc_block_byte(c->job, unit, b->kind, shard, end_block), from, to);
}

static uint32_t number_of(const claims *c, const slc_item *item)
{
    return (uint32_t)(item - c->program->items);
}

/* Claims the buffer for the micro-batch if the window's values are in it there. */
static void claim_gathered(claims *c, uint32_t buffer, uint32_t micro_batch, bool evaluate)
{
    const slc_buffer *b = &c->plan->buffers[buffer];
    const slc_unit *unit = &c->job->units[b->unit];
    slc_window window;
    uint32_t number = b->index % slc_unit_window_count(c->job, unit, true);
    if (slc_gathered_number(c->job, unit, micro_batch, number) != b->index) return;
    if (!slc_unit_window(c->job, unit, !evaluate, number, &window)) return;
    slc_runs runs = slc_find_runs(c->places, SLC_ITEM_GATHER_WINDOW, micro_batch, b->unit, number);
    uint32_t end = slc_find_slot(c->places, slc_gathered_until(c->job, unit, evaluate, micro_batch), window.last_slot);
    for (size_t r = 0; r < runs.count; r++) {
        const slc_item *item = runs.items[r];
        claim_blocks(c, buffer, item->first_block, item->first_block + item->block_count, false, number_of(c, item),
                     end);
    }
}

/* A gradient lives from the first slot that adds to it until its last reader: the reduction if the sum goes elsewhere,
 * else the update. */
static void claim_gradient(claims *c, uint32_t buffer)
{
    const slc_job *job = c->job;
    uint32_t u = c->plan->buffers[buffer].unit, first, last_slot, last = job->micro_batches - 1;
    slc_unit_gradient_slots(job, &job->units[u], &first, &last_slot);
    bool moved = slc_operations_of(job, &job->units[u], c->plan->strategies[u]).moves_sum;
    for (uint32_t m = 0; m <= last; m++) {
        if (!job->each && m) break;
        slc_runs runs = slc_find_runs(c->places, moved ? SLC_ITEM_REDUCE_SCATTER : SLC_ITEM_UPDATE,
                                      moved && job->each ? m : last, u, 0);
        for (size_t r = 0; r < runs.count; r++) {
            const slc_item *item = runs.items[r];
            claim_blocks(c, buffer, item->first_block, item->first_block + item->block_count, false,
                         slc_find_slot(c->places, m, first), number_of(c, item));
        }
    }
}

/* Writers and readers may be cut differently, so each range that a writer and a reader share is a claim. */
static void claim_reduced(claims *c, uint32_t buffer)
{
    uint32_t u = c->plan->buffers[buffer].unit, last = c->job->micro_batches - 1;
    slc_unit_operations of = slc_operations_of(c->job, &c->job->units[u], c->plan->strategies[u]);
    bool gathered = of.gather_gradient != SLC_ITEM_KINDS && !of.whole_sum;
    slc_item_kind reader = gathered ? SLC_ITEM_GATHER_GRADIENT : SLC_ITEM_UPDATE;
    slc_runs writes = slc_find_runs(c->places, SLC_ITEM_REDUCE_SCATTER, c->job->each ? 0 : last, u, 0);
    slc_runs reads = slc_find_runs(c->places, reader, last, u, 0);
    for (size_t w = 0, r = 0; w < writes.count && r < reads.count;) {
        const slc_item *writer = writes.items[w], *read = reads.items[r];
        uint64_t first = writer->first_block > read->first_block ? writer->first_block : read->first_block;
        uint64_t writer_end = writer->first_block + writer->block_count, end = read->first_block + read->block_count;
        bool writer_first = writer_end <= end, both = writer_end == end;
        if (writer_end < end) end = writer_end;
        if (first < end) claim_blocks(c, buffer, first, end, !of.whole_sum, number_of(c, writer), number_of(c, read));
        w += writer_first;
        r += !writer_first || both;
    }
}

/* Claims the buffer of a whole unit, from its writer to its reader. */
static void claim_between(claims *c, uint32_t buffer, slc_item_kind writer, slc_item_kind reader)
{
    uint32_t u = c->plan->buffers[buffer].unit, last = c->job->micro_batches - 1;
    slc_runs from = slc_find_runs(c->places, writer, last, u, 0), to = slc_find_runs(c->places, reader, last, u, 0);
    claim_whole(c, buffer, from.count ? number_of(c, from.items[0]) : SLC_NONE,
                to.count ? number_of(c, to.items[0]) : SLC_NONE);
}

static bool is_recomputed(const claims *c, const slc_activation_life *life)
{
    return life->recomputable && c->plan->recompute[slc_slot_layer(c->job, life->first_slot)];
}

/* The item of a micro-batch's message; `channel` is that of slc_activation_turn. */
static uint32_t message_item(const claims *c, uint32_t channel, uint32_t micro_batch)
{
    const bool receives = c->job->channels[channel - 1].receives;
    slc_runs runs =
        slc_find_runs(c->places, receives ? SLC_ITEM_RECEIVE : SLC_ITEM_SEND, micro_batch, SLC_NONE, channel - 1);
    return runs.count ? number_of(c, runs.items[0]) : SLC_NONE;
}

static void claim_activation(claims *c, uint32_t buffer, uint32_t micro_batch, bool evaluate)
{
    const uint32_t index = c->plan->buffers[buffer].index;
    const slc_activation_life *life = &c->job->activations[index];
    const slc_activation_turn turn = c->job->turns ? c->job->turns[index] : (slc_activation_turn){.turns = 1};
    uint32_t last = evaluate ? life->last_forward_slot : life->last_slot;
    if (last < life->first_slot || (evaluate && last >= c->job->layer_count)) return;
    if (micro_batch % turn.turns != turn.turn) return;
    uint32_t from = slc_find_slot(c->places, micro_batch, life->first_slot);
    uint32_t to = slc_find_slot(c->places, micro_batch, last);
    if (!evaluate && is_recomputed(c, life)) {
        claim_whole(c, buffer, from, from);
        claim_whole(c, buffer, to, to);
        return;
    }
    if (turn.receive && !evaluate) from = message_item(c, turn.receive, micro_batch);
    if (turn.send && !evaluate) {
        const uint32_t sent = message_item(c, turn.send, micro_batch);
        if (sent == SLC_NONE || sent > to) to = sent;
    }
    claim_whole(c, buffer, from, to);
}

static void claim_workspace(claims *c, uint32_t buffer, uint32_t micro_batch, bool evaluate)
{
    uint32_t slot = c->job->workspaces[c->plan->buffers[buffer].index].slot;
    if (evaluate && !slc_slot_is_forward(c->job, slot)) return;
    uint32_t item = slc_find_slot(c->places, micro_batch, slot);
    claim_whole(c, buffer, item, item);
}

static int by_start(const void *a, const void *b)
{
    const slc_claim *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->buffer != y->buffer) return x->buffer < y->buffer ? -1 : 1;
    return (x->first_byte > y->first_byte) - (x->first_byte < y->first_byte);
}

static bool is_resident(const slc_plan *plan, uint32_t buffer)
{
    for (uint32_t s = 0; s < plan->static_count; s++)
        if (plan->statics[s].buffer == buffer) return true;
    return false;
}

static void claim_all(claims *c, bool evaluate)
{
    uint32_t micro_batches = evaluate ? 1 : c->job->micro_batches;
    for (uint32_t b = 0; b < c->plan->buffer_count; b++) {
        const slc_buffer *buffer = &c->plan->buffers[b];
        for (uint32_t m = 0; m < micro_batches; m++) {
            if (buffer->kind == SLC_BUFFER_GATHERED) claim_gathered(c, b, m, evaluate);
            if (buffer->kind == SLC_BUFFER_ACTIVATION) claim_activation(c, b, m, evaluate);
            if (buffer->kind == SLC_BUFFER_WORKSPACE) claim_workspace(c, b, m, evaluate);
        }
        if (evaluate) continue;
        if (buffer->kind == SLC_BUFFER_REDUCED) claim_reduced(c, b);
        if (buffer->kind == SLC_BUFFER_PACKETS) claim_between(c, b, SLC_ITEM_COMPRESS, SLC_ITEM_EXCHANGE);
        if (buffer->kind == SLC_BUFFER_RESULTS) claim_between(c, b, SLC_ITEM_EXCHANGE, SLC_ITEM_UPDATE);
        if (buffer->kind == SLC_BUFFER_GRADIENT && !is_resident(c->plan, b)) claim_gradient(c, b);
    }
}

static sluice_status check_ends(const slc_plan *plan, const slc_program *program)
{
    for (uint32_t i = 0; i < program->claim_count; i++) {
        const slc_claim *made = &program->claims[i];
        if (made->from == SLC_NONE || made->to == SLC_NONE ||
            (made->from > made->to && !slc_claim_wraps(program, made)))
            return slc_error(SLUICE_ERR_FORMAT, "%s: its life has no start or end in the order",
                             slc_buffer_kind_name(plan->buffers[made->buffer].kind));
    }
    return SLUICE_OK;
}

sluice_status slc_plan_add_claims(const slc_job *job, slc_plan *plan, const slc_places *places)
{
    const bool evaluate = places->program == &plan->evaluate;
    slc_program *program = evaluate ? &plan->evaluate : &plan->train;
    claims c = {.job = job, .plan = plan, .program = program, .places = places};
    claim_all(&c, evaluate);
    if (c.failed) return slc_error(SLUICE_ERR_MEMORY, "no memory for the lifetimes of buffers");
    if (program->claim_count) qsort(program->claims, program->claim_count, sizeof *program->claims, by_start);
    return check_ends(plan, program);
}
