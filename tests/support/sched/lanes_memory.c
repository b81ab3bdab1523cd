#include "tests/support/sched/lanes_memory.h"

#include "lib/plan/roles.h"
#include "lib/plan/strategy_table.h"

#include <stdio.h>
#include <string.h>

void lanes_fail(two_lanes *t, uint32_t item, const char *what)
{
    const slc_item *i = &t->program->items[item];
    if (!t->error[0])
        snprintf(t->error, sizeof t->error, "%s item %u (%s%s, micro-batch %u, slot %u, unit %d): %s",
                 t->evaluate ? "evaluation" : "step", item, i->late ? "late " : "", slc_item_kind_name(i->kind),
                 i->micro_batch, i->slot, (int)i->unit, what);
}

void lanes_find_buffers(two_lanes *t)
{
    memset(t->of_unit, 0xff, sizeof t->of_unit);
    memset(t->of_job, 0xff, sizeof t->of_job);
    memset(t->resident, 0, sizeof t->resident);
    for (uint32_t b = 0; b < t->plan->buffer_count; b++) {
        const slc_buffer *buffer = &t->plan->buffers[b];
        if (buffer->unit != SLC_NONE && (buffer->unit >= TEST_UNITS || buffer->index >= TEST_INDICES))
            snprintf(t->error, sizeof t->error, "the test has no room for buffer %u of unit %u", buffer->index,
                     buffer->unit);
        else if (buffer->unit != SLC_NONE)
            t->of_unit[buffer->kind][buffer->unit][buffer->index] = b;
        if (buffer->unit == SLC_NONE && buffer->index < TEST_ACTIVATIONS) t->of_job[buffer->kind][buffer->index] = b;
    }
    for (uint32_t s = 0; s < t->plan->static_count; s++) t->resident[t->plan->statics[s].buffer] = true;
}

uint32_t lanes_buffer(const two_lanes *t, slc_buffer_kind kind, uint32_t unit, uint32_t index)
{
    return unit == SLC_NONE ? t->of_job[kind][index] : t->of_unit[kind][unit][index];
}

uint32_t lanes_gathered(const two_lanes *t, const slc_item *op)
{
    return lanes_buffer(t, SLC_BUFFER_GATHERED, op->unit,
                        slc_gathered_number(t->job, &t->job->units[op->unit], op->micro_batch, op->index));
}

typedef struct {
    uint64_t first, end;
} lanes_bytes;

bool lanes_whole_sum(const two_lanes *t, uint32_t u)
{
    const slc_unit *unit = &t->job->units[u];
    return t->plan->strategies[u] == SLC_DP && t->job->each && t->job->micro_batches > 1 &&
           unit->dtype == SLUICE_BF16 && t->job->wire == SLUICE_BF16;
}

/* The bytes of a block in its buffer; a buffer without blocks is one block. */
static lanes_bytes lanes_block(const two_lanes *t, uint32_t b, uint64_t block)
{
    const slc_buffer *buffer = &t->plan->buffers[b];
    bool shard = buffer->kind == SLC_BUFFER_VALUE_SHARD ||
                 (buffer->kind == SLC_BUFFER_REDUCED && !lanes_whole_sum(t, buffer->unit));
    if (!shard && buffer->kind != SLC_BUFFER_REDUCED && buffer->kind != SLC_BUFFER_VALUE &&
        buffer->kind != SLC_BUFFER_GATHERED && buffer->kind != SLC_BUFFER_GRADIENT)
        return (lanes_bytes){0, block ? 0 : buffer->bytes};
    const slc_unit *unit = &t->job->units[buffer->unit];
    if (unit->role == SLC_UNIT_ROWS) return (lanes_bytes){0, block ? 0 : buffer->bytes};
    /* Sizes in the test's own arithmetic: fp32 or half of it. */
    bool narrow = buffer->kind == SLC_BUFFER_GRADIENT  ? slc_gradient_dtype(t->job, unit) == SLUICE_BF16
                  : buffer->kind == SLC_BUFFER_REDUCED ? slc_reduced_dtype(t->job, unit) == SLUICE_BF16
                                                       : unit->dtype == SLUICE_BF16;
    uint64_t width = narrow ? 2 : 4, share = shard ? t->job->world : 1;
    uint64_t bytes = width * unit->block_elements / share, first = block * bytes, all = width * unit->elements / share;
    return (lanes_bytes){first < all ? first : all, first + bytes < all ? first + bytes : all};
}

bool lanes_is_claimed(const two_lanes *t, uint32_t buffer, uint64_t block)
{
    if (t->resident[buffer]) return true;
    lanes_bytes left = lanes_block(t, buffer, block);
    for (uint64_t before = left.end + 1; left.first < left.end && left.first != before;) {
        before = left.first;
        for (uint32_t c = 0; c < t->active_count; c++) {
            const slc_claim *claim = &t->program->claims[t->active[c]];
            if (claim->buffer == buffer && claim->first_byte <= left.first && left.first < claim->end_byte)
                left.first = claim->end_byte;
        }
    }
    return left.first >= left.end;
}

static bool lanes_overlap(const slc_plan *plan, const slc_claim *a, const slc_claim *b)
{
    uint64_t x = plan->buffers[a->buffer].offset, y = plan->buffers[b->buffer].offset;
    return x + a->first_byte < y + b->end_byte && y + b->first_byte < x + a->end_byte;
}

static void lanes_claim_one(two_lanes *t, uint32_t item, uint32_t c, uint32_t pass)
{
    const slc_claim *claim = &t->program->claims[c];
    for (uint32_t a = 0; a < t->active_count; a++) {
        if (t->active[a] == c) lanes_fail(t, item, "claims what is claimed already");
        if (lanes_overlap(t->plan, claim, &t->program->claims[t->active[a]]))
            lanes_fail(t, item, "claims memory that another buffer holds");
    }
    for (uint32_t s = 0; s < t->plan->static_count; s++)
        if (lanes_overlap(t->plan, claim, &t->plan->statics[s])) lanes_fail(t, item, "claims resident memory");
    if (t->error[0]) return;
    t->active[t->active_count++] = c;
    t->made[c] = pass;
    for (uint64_t k = 0; k < TEST_BLOCKS; k++) {
        lanes_bytes bytes = lanes_block(t, claim->buffer, k);
        if (bytes.first < claim->end_byte && claim->first_byte < bytes.end) t->tag[claim->buffer][k] = GARBAGE;
    }
    uint64_t end = t->plan->buffers[claim->buffer].offset + claim->end_byte;
    if (end > t->peak) t->peak = end;
}

void lanes_claim_all(two_lanes *t, lanes_place place)
{
    uint32_t low = 0, high = t->program->claim_count; /* claims are sorted */
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (t->program->claims[middle].from < place.item)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t c = low; c < t->program->claim_count && t->program->claims[c].from == place.item; c++)
        lanes_claim_one(t, place.item, c, place.pass);
}

void lanes_release(two_lanes *t, lanes_place place)
{
    uint32_t due = 0;
    for (uint32_t c = 0; c < t->program->claim_count; c++) due += t->program->claims[c].to == place.item;
    for (uint32_t a = 0; due && a < t->active_count;) {
        const slc_claim *claim = &t->program->claims[t->active[a]];
        if (claim->to != place.item || t->made[t->active[a]] + slc_claim_wraps(t->program, claim) != place.pass) {
            a++;
            continue;
        }
        t->active[a] = t->active[--t->active_count];
        due--;
    }
    if (due) lanes_fail(t, place.item, "releases what it never claimed");
}
