/* Runs a plan as two lanes would, at random speeds, and looks at what really happens. Memory is claimed when an item
 * starts and released when one ends. Every block of every value and gradient, and every activation, carries a tag that
 * says what it is, so that reading the wrong one, or one that is being written, is noticed. This code knows nothing of
 * what planner and validator think. Operations start in order, several may be under way, and they end in order. A run
 * is some passes, of which the first leaves late items out, and a drain, which runs only those. */
#ifndef SLC_TWO_LANES_TEST_H
#define SLC_TWO_LANES_TEST_H

#include "sched/layout/random_job_test.h"

#include <stdlib.h>

enum { TEST_BUFFERS = 512, TEST_CLAIMS = 4096, TEST_ITEMS = 2048, TEST_PASSES = 4, TEST_INDICES = 32 };
enum { GARBAGE = -1, STEP_TAGS = 1000, REDUCED_TAG = 500 };
enum { COMPUTE, COMMUNICATION, LANES };

typedef struct {
    uint32_t item, pass;
} lanes_place;

typedef struct {
    uint64_t step; /* number of the step, plus 1 */
    uint64_t blocks;
} lanes_count;

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    const slc_program *program;
    bool evaluate;
    test_dice dice;
    uint32_t of_unit[SLC_BUFFER_KINDS][TEST_UNITS][TEST_INDICES], of_job[SLC_BUFFER_KINDS][TEST_ACTIVATIONS];
    bool resident[TEST_BUFFERS];
    int64_t tag[TEST_BUFFERS][TEST_BLOCKS]; /* GARBAGE; -2 - item: that item is writing it */
    int64_t own[TEST_UNITS][TEST_BLOCKS];   /* version of the owned part of the values */
    lanes_count reduced[TEST_UNITS];        /* blocks of the unit's last reduction, in the last step that had one */
    uint64_t told[TEST_UNITS];              /* onebit: steps whose agreement may know about non-finite gradients */
    uint64_t agreed;                        /* steps that have agreed */
    uint64_t base;                          /* steps trained before this run of the program */
    uint32_t active[TEST_CLAIMS], active_count, made[TEST_CLAIMS]; /* claims that are held; the pass that made each */
    lanes_place lane[LANES][TEST_PASSES * TEST_ITEMS];
    uint32_t length[LANES], begun[LANES], over[LANES];
    uint32_t before_drain;                   /* items of the compute lane */
    uint32_t slots_end[TEST_PASSES];         /* the pass's last slot, as a position in its lane */
    uint32_t place[TEST_PASSES][TEST_ITEMS]; /* position in its lane, counted from 1; 0: left out */
    uint32_t passes;                         /* without the drain */
    uint64_t peak;
    char error[200]; /* the first fault; empty: none */
} two_lanes;

TEST_INLINE void lanes_fail(two_lanes *t, uint32_t item, const char *what)
{
    const slc_item *i = &t->program->items[item];
    if (!t->error[0])
        snprintf(t->error, sizeof t->error, "%s item %u (%s%s, micro-batch %u, slot %u, unit %d): %s",
                 t->evaluate ? "evaluation" : "step", item, i->late ? "late " : "", slc_item_kind_name(i->kind),
                 i->micro_batch, i->slot, (int)i->unit, what);
}

/* ---- Memory ---- */

TEST_INLINE void lanes_find_buffers(two_lanes *t)
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

TEST_INLINE uint32_t lanes_buffer(const two_lanes *t, slc_buffer_kind kind, uint32_t unit, uint32_t index)
{
    return unit == SLC_NONE ? t->of_job[kind][index] : t->of_unit[kind][unit][index];
}

TEST_INLINE uint32_t lanes_gathered(const two_lanes *t, const slc_item *op)
{
    return lanes_buffer(t, SLC_BUFFER_GATHERED, op->unit,
                        slc_gathered_number(t->job, &t->job->units[op->unit], op->micro_batch, op->index));
}

typedef struct {
    uint64_t first, end;
} lanes_bytes;

/* dp with each, if the sum's type is not the gradient's: it is gathered in place. */
TEST_INLINE bool lanes_whole_sum(const two_lanes *t, uint32_t u)
{
    const slc_unit *unit = &t->job->units[u];
    return t->plan->strategies[u] == SLC_DP && t->job->each && t->job->micro_batches > 1 &&
           unit->dtype == SLUICE_BF16 && t->job->wire == SLUICE_BF16;
}

/* The bytes of a block in its buffer; a buffer without blocks is one block. */
TEST_INLINE lanes_bytes lanes_block(const two_lanes *t, uint32_t b, uint64_t block)
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

TEST_INLINE bool lanes_is_claimed(const two_lanes *t, uint32_t buffer, uint64_t block)
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

TEST_INLINE bool lanes_overlap(const slc_plan *plan, const slc_claim *a, const slc_claim *b)
{
    uint64_t x = plan->buffers[a->buffer].offset, y = plan->buffers[b->buffer].offset;
    return x + a->first_byte < y + b->end_byte && y + b->first_byte < x + a->end_byte;
}

TEST_INLINE void lanes_claim_one(two_lanes *t, uint32_t item, uint32_t c, uint32_t pass)
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

TEST_INLINE void lanes_claim_all(two_lanes *t, lanes_place place)
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

TEST_INLINE void lanes_release(two_lanes *t, lanes_place place)
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

/* ---- Data ---- */

typedef struct {
    two_lanes *t;
    uint32_t item;
    uint64_t step;
    bool end; /* false: the item's start */
} touch;

TEST_INLINE int64_t *lanes_tag(touch *x, uint32_t buffer, uint64_t block)
{
    if (buffer == SLC_NONE || !lanes_is_claimed(x->t, buffer, block)) {
        lanes_fail(x->t, x->item, "touches memory that is not claimed");
        return &x->t->tag[TEST_BUFFERS - 1][0];
    }
    return &x->t->tag[buffer][block];
}

/* A block that is read must stay as it is from the item's start to its end. */
TEST_INLINE void lanes_read(touch *x, uint32_t buffer, uint64_t block, int64_t wanted, const char *what)
{
    if (*lanes_tag(x, buffer, block) != wanted) lanes_fail(x->t, x->item, what);
}

/* `wanted` is the tag that must be there before; GARBAGE: any that is not being written. */
TEST_INLINE void lanes_write(touch *x, uint32_t buffer, uint64_t block, int64_t wanted, int64_t result,
                             const char *what)
{
    int64_t *tag = lanes_tag(x, buffer, block), mine = -2 - (int64_t)x->item;
    if (x->end ? *tag != mine : wanted == GARBAGE ? *tag < GARBAGE : *tag != wanted) lanes_fail(x->t, x->item, what);
    *tag = x->end ? result : mine;
}

TEST_INLINE int64_t lanes_version(const touch *x, const slc_unit *unit)
{
    return unit->trainable ? (int64_t)(x->t->base + (x->t->evaluate ? 0 : x->step)) : 0;
}

TEST_INLINE int64_t lanes_step_tag(const touch *x)
{
    return (int64_t)(x->t->base + x->step + 1) * STEP_TAGS;
}

TEST_INLINE void touch_values(touch *x, uint32_t u, const slc_item *slot)
{
    const slc_unit *unit = &x->t->job->units[u];
    uint32_t buffer = lanes_buffer(x->t, SLC_BUFFER_VALUE, u, 0);
    slc_window window;
    for (uint32_t w = 0;
         x->t->plan->strategies[u] == SLC_FSDP && slc_unit_window(x->t->job, unit, !x->t->evaluate, w, &window); w++)
        if (window.first_slot <= slot->slot && slot->slot <= window.last_slot)
            buffer =
                lanes_buffer(x->t, SLC_BUFFER_GATHERED, u, slc_gathered_number(x->t->job, unit, slot->micro_batch, w));
    for (uint64_t b = 0; b < slc_unit_blocks(unit); b++)
        lanes_read(x, buffer, b, lanes_version(x, unit), "reads values that are not those of this step");
}

TEST_INLINE void touch_gradient(touch *x, uint32_t u, uint32_t use, const slc_item *slot)
{
    const slc_job *job = x->t->job;
    const slc_unit *unit = &job->units[u];
    int64_t before = (job->each ? 0 : slot->micro_batch * unit->use_count) + (unit->use_count - 1 - use);
    for (uint64_t b = 0; b < slc_unit_blocks(unit); b++)
        lanes_write(x, lanes_buffer(x->t, SLC_BUFFER_GRADIENT, u, 0), b, before ? lanes_step_tag(x) + before : GARBAGE,
                    lanes_step_tag(x) + before + 1, "adds to a gradient that is not what was there before");
}

TEST_INLINE bool lanes_recomputes(const two_lanes *t, uint32_t layer)
{
    return !t->evaluate && t->plan->recompute && t->plan->recompute[layer];
}

TEST_INLINE void touch_activations(touch *x, const slc_item *slot)
{
    const slc_job *job = x->t->job;
    int64_t tag = lanes_step_tag(x) + slot->micro_batch;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        uint32_t last = x->t->evaluate ? life->last_forward_slot : life->last_slot;
        bool again = life->recomputable && lanes_recomputes(x->t, slc_slot_layer(job, life->first_slot));
        if (slot->slot < life->first_slot || slot->slot > last) continue;
        if (again && slot->slot != life->first_slot && slot->slot != last) continue;
        uint32_t buffer = lanes_buffer(x->t, SLC_BUFFER_ACTIVATION, SLC_NONE, a);
        if (slot->slot == life->first_slot || again)
            lanes_write(x, buffer, 0, GARBAGE, tag, "writes an activation that another one writes");
        else
            lanes_read(x, buffer, 0, tag, "reads an activation that is gone");
    }
    for (uint32_t w = 0; w < job->workspace_count; w++)
        if (job->workspaces[w].slot == slot->slot)
            lanes_tag(x, lanes_buffer(x->t, SLC_BUFFER_WORKSPACE, SLC_NONE, w), 0);
}

TEST_INLINE void touch_slot(touch *x, const slc_item *slot)
{
    const slc_job *job = x->t->job;
    uint32_t layer = slc_slot_layer(job, slot->slot);
    bool forward = slc_slot_is_forward(job, slot->slot), again = lanes_recomputes(x->t, layer);
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t n = 0; n < job->units[u].use_count; n++) {
            if (job->units[u].uses[n].layer != layer) continue;
            if (forward || again || job->units[u].uses[n].backward_value) touch_values(x, u, slot);
            if (!forward && job->units[u].trainable) touch_gradient(x, u, n, slot);
        }
    touch_activations(x, slot);
}

/* The buffer of a SPLIT unit's sum, and its tag when it holds `sums` micro-batches, and with `own` the unit's own
 * gradient of one more. */
TEST_INLINE uint32_t lanes_split_sum(const two_lanes *t, uint32_t u)
{
    uint32_t reduced = lanes_buffer(t, SLC_BUFFER_REDUCED, u, 0);
    return reduced == SLC_NONE ? lanes_buffer(t, SLC_BUFFER_GRADIENT, u, 0) : reduced;
}

TEST_INLINE int64_t lanes_split_tag(const touch *x, uint32_t sums, bool own)
{
    return lanes_step_tag(x) + REDUCED_TAG + 2 * (int64_t)sums + own;
}

/* Both uses' gradients of each micro-batch are added in turn. */
TEST_INLINE void touch_split_reduction(touch *x, const slc_item *op, uint64_t b)
{
    two_lanes *t = x->t;
    uint32_t gradient = lanes_buffer(t, SLC_BUFFER_GRADIENT, op->unit, 0), sum = lanes_split_sum(t, op->unit);
    uint32_t before = t->job->each ? op->micro_batch : 0;
    int64_t full = lanes_step_tag(x) + t->job->units[op->unit].use_count * (t->job->each ? 1 : t->job->micro_batches);
    int64_t wanted = sum == gradient ? full : before ? lanes_split_tag(x, before, false) : GARBAGE;
    if (sum != gradient) lanes_read(x, gradient, b, full, "reduces a gradient that is not complete");
    lanes_write(x, sum, b, wanted, lanes_split_tag(x, before, true), "adds to a sum that is not what was there before");
}

/* The lists of rows come from the caller and exist from a micro-batch's first gather on. */
TEST_INLINE int64_t lanes_list_tag(const touch *x, uint32_t micro_batch)
{
    return lanes_step_tag(x) + micro_batch + 1;
}

TEST_INLINE void touch_rows_reduction(touch *x, const slc_item *op)
{
    two_lanes *t = x->t;
    const slc_job *job = t->job;
    uint32_t partner = job->units[op->unit].partner, before = job->each ? op->micro_batch : 0;
    lanes_read(x, lanes_buffer(t, SLC_BUFFER_GRADIENT, op->unit, 0), 0,
               lanes_step_tag(x) + (job->each ? 1 : job->micro_batches), "reduces a gradient that is not complete");
    lanes_read(x, lanes_buffer(t, SLC_BUFFER_ROW_LISTS, op->unit, 0), 0, lanes_list_tag(x, op->micro_batch),
               "reduces with another micro-batch's lists");
    for (uint64_t b = 0; b < slc_unit_blocks(&job->units[partner]); b++)
        lanes_write(x, lanes_split_sum(t, partner), b, lanes_split_tag(x, before, true),
                    lanes_split_tag(x, before + 1, false), "adds rows to a sum that is not what was there before");
}

TEST_INLINE void touch_rows_gather(touch *x, const slc_item *op)
{
    two_lanes *t = x->t;
    const slc_unit *unit = &t->job->units[op->unit];
    int64_t version = lanes_version(x, unit);
    uint32_t lists = lanes_buffer(t, SLC_BUFFER_ROW_LISTS, op->unit, 0);
    uint32_t shard = lanes_buffer(t, SLC_BUFFER_VALUE_SHARD, unit->partner, 0);
    for (uint32_t i = 0; i < t->program->item_count && op->micro_batch; i++) {
        const slc_item *slot = &t->program->items[i];
        if (slot->kind == SLC_ITEM_SLOT && slot->micro_batch + 1 == op->micro_batch &&
            t->over[COMPUTE] < t->place[x->step][i])
            lanes_fail(t, x->item, "gathers rows that nobody has told");
    }
    for (uint64_t b = 0; b < slc_unit_blocks(&t->job->units[unit->partner]); b++) {
        if (t->own[unit->partner][b] != version) lanes_fail(t, x->item, "gathers rows of another step");
        if (shard != SLC_NONE) lanes_read(x, shard, b, version, "gathers rows that are being updated");
    }
    if (!x->end) *lanes_tag(x, lists, 0) = lanes_list_tag(x, op->micro_batch);
    lanes_read(x, lists, 0, lanes_list_tag(x, op->micro_batch), "gathers by another micro-batch's lists");
    lanes_write(x, lanes_gathered(t, op), 0, GARBAGE, version, "gathers into what is being written");
}

TEST_INLINE void touch_whole_reduction(touch *x, const slc_item *op, uint64_t b)
{
    const slc_job *job = x->t->job;
    uint32_t gradient = lanes_buffer(x->t, SLC_BUFFER_GRADIENT, op->unit, 0);
    uint32_t reduced = lanes_buffer(x->t, SLC_BUFFER_REDUCED, op->unit, 0);
    int64_t tag = lanes_step_tag(x), full = job->units[op->unit].use_count * (job->each ? 1 : job->micro_batches);
    const char *unfinished = "reduces a gradient that is not complete";
    if (op->kind == SLC_ITEM_ALL_REDUCE || reduced == SLC_NONE) {
        lanes_write(x, gradient, b, tag + full, tag + REDUCED_TAG, unfinished);
    } else {
        int64_t before = job->each ? op->micro_batch : 0;
        lanes_read(x, gradient, b, tag + full, unfinished);
        lanes_write(x, reduced, b, before ? tag + before : GARBAGE, tag + before + 1,
                    "adds to a reduced gradient that is not what was there before");
    }
}

TEST_INLINE void touch_reduction(touch *x, const slc_item *op, uint64_t b)
{
    const slc_job *job = x->t->job;
    slc_unit_role role = job->units[op->unit].role;
    if (role == SLC_UNIT_WHOLE) touch_whole_reduction(x, op, b);
    if (role == SLC_UNIT_SPLIT) touch_split_reduction(x, op, b);
    if (role == SLC_UNIT_ROWS) touch_rows_reduction(x, op);
    lanes_count *reduced_now = &x->t->reduced[op->unit];
    if (!x->end || op->micro_batch + 1 != job->micro_batches) return;
    uint64_t step = x->t->base + x->step + 1;
    *reduced_now = (lanes_count){step, reduced_now->step == step ? reduced_now->blocks + 1 : 1};
}

/* ---- onebit ---- */

TEST_INLINE bool lanes_waits(const two_lanes *t, uint32_t u)
{
    return t->job->barrier && !(t->plan->strategies[u] == SLC_ONEBIT && t->job->norms_barrier);
}

/* Two operations change the states: compressing makes their tags odd, updating makes them even again. */
TEST_INLINE void touch_states(touch *x, uint32_t u, int64_t before)
{
    for (uint32_t s = 0; s < x->t->job->states; s++)
        lanes_write(x, lanes_buffer(x->t, SLC_BUFFER_STATE, u, s), 0, before, before + 1,
                    "changes states that are not those of this step");
}

TEST_INLINE void touch_own_gradient(touch *x, uint32_t u)
{
    const slc_job *job = x->t->job;
    int64_t full = job->refreshes ? REDUCED_TAG : job->units[u].use_count * job->micro_batches;
    for (uint64_t b = 0; b < slc_unit_blocks(&job->units[u]); b++)
        lanes_read(x, lanes_buffer(x->t, SLC_BUFFER_GRADIENT, u, 0), b, lanes_step_tag(x) + full,
                   "reads a gradient that is not complete");
}

TEST_INLINE void touch_compressed(touch *x, const slc_item *op)
{
    two_lanes *t = x->t;
    uint32_t u = op->unit;
    int64_t tag = lanes_step_tag(x), version = lanes_version(x, &t->job->units[u]);
    uint32_t packets = lanes_buffer(t, SLC_BUFFER_PACKETS, u, 0), results = lanes_buffer(t, SLC_BUFFER_RESULTS, u, 0);
    bool waits = lanes_waits(t, u), compresses = op->kind == SLC_ITEM_COMPRESS;
    if (op->first_block || op->block_count != slc_unit_blocks(&t->job->units[u]))
        lanes_fail(t, x->item, "a part of a unit");
    if (op->kind == SLC_ITEM_INSPECT || compresses) touch_own_gradient(x, u);
    if (compresses) {
        if (waits && t->agreed != t->base + x->step + 1) lanes_fail(t, x->item, "compresses before all agree");
        touch_states(x, u, 2 * version);
        lanes_write(x, lanes_buffer(t, SLC_BUFFER_WORKER_ERROR, u, 0), 0, version, version + 1, "another step's error");
        lanes_write(x, packets, 0, GARBAGE, tag, "overwrites packets that are being sent");
    }
    if (op->kind == SLC_ITEM_EXCHANGE) {
        lanes_read(x, packets, 0, tag, "sends what is not compressed");
        lanes_write(x, lanes_buffer(t, SLC_BUFFER_SERVER_ERROR, u, 0), 0, version, version + 1, "another step's error");
        lanes_write(x, results, 0, GARBAGE, tag, "overwrites results that are being read");
    }
    if (op->kind == SLC_ITEM_UPDATE) {
        lanes_read(x, results, 0, tag, "applies what is not exchanged");
        touch_own_gradient(x, u);
        touch_states(x, u, 2 * version + 1);
    }
    if (x->end && op->kind == (waits ? SLC_ITEM_INSPECT : SLC_ITEM_COMPRESS)) t->told[u] = t->base + x->step + 1;
}

TEST_INLINE void touch_update(touch *x, const slc_item *op, uint64_t b)
{
    two_lanes *t = x->t;
    slc_strategy k = t->plan->strategies[op->unit];
    int64_t tag = lanes_step_tag(x), version = lanes_version(x, &t->job->units[op->unit]);
    uint32_t reduced = lanes_buffer(t, SLC_BUFFER_REDUCED, op->unit, 0);
    if (k == SLC_ONEBIT)
        (void)0; /* touch_compressed has checked it */
    else if (t->job->units[op->unit].role == SLC_UNIT_SPLIT)
        lanes_read(x, lanes_split_sum(t, op->unit), b,
                   lanes_split_tag(x, t->job->each ? t->job->micro_batches : 1, false), "updates by a wrong gradient");
    else if (lanes_whole_sum(t, op->unit))
        lanes_read(x, reduced, b, tag + REDUCED_TAG, "updates by a wrong gradient");
    else if (reduced != SLC_NONE && k != SLC_DP)
        lanes_read(x, reduced, b, tag + (t->job->each ? t->job->micro_batches : 1), "updates by a wrong gradient");
    else
        lanes_read(x, lanes_buffer(t, SLC_BUFFER_GRADIENT, op->unit, 0), b, tag + REDUCED_TAG,
                   "updates by a wrong gradient");
    if (lanes_waits(t, op->unit) && t->agreed != t->base + x->step + 1)
        lanes_fail(t, x->item, "updates before all agree");
    uint32_t value = lanes_buffer(t, k == SLC_FSDP ? SLC_BUFFER_VALUE_SHARD : SLC_BUFFER_VALUE, op->unit, 0);
    bool whole = k == SLC_DP || k == SLC_ONEBIT || k == SLC_FSDP; /* otherwise the parts of other ranks are still old */
    lanes_write(x, value, b, version, whole ? version + 1 : INT64_MAX, "updates values twice or too early");
    if (x->end) t->own[op->unit][b] = version + 1;
}

TEST_INLINE void touch_gather(touch *x, const slc_item *op, uint64_t b)
{
    two_lanes *t = x->t;
    int64_t tag = lanes_step_tag(x), version = lanes_version(x, &t->job->units[op->unit]);
    if (t->job->units[op->unit].role == SLC_UNIT_ROWS) {
        touch_rows_gather(x, op);
    } else if (op->kind == SLC_ITEM_GATHER_GRADIENT && lanes_whole_sum(t, op->unit)) {
        lanes_write(x, lanes_buffer(t, SLC_BUFFER_REDUCED, op->unit, 0), b, tag + t->job->micro_batches,
                    tag + REDUCED_TAG, "gathers a gradient that is not reduced");
    } else if (op->kind == SLC_ITEM_GATHER_GRADIENT) {
        lanes_read(x, lanes_buffer(t, SLC_BUFFER_REDUCED, op->unit, 0), b, tag + t->job->micro_batches,
                   "gathers a gradient that is not reduced");
        lanes_write(x, lanes_buffer(t, SLC_BUFFER_GRADIENT, op->unit, 0), b, GARBAGE, tag + REDUCED_TAG,
                    "gathers into a gradient that is being written");
    } else if (op->kind == SLC_ITEM_GATHER_VALUE) {
        if (t->own[op->unit][b] != version + 1) lanes_fail(t, x->item, "gathers values before they are updated");
        lanes_write(x, lanes_buffer(t, SLC_BUFFER_VALUE, op->unit, 0), b, INT64_MAX, version + 1,
                    "gathers values before they are updated");
    } else {
        lanes_read(x, lanes_buffer(t, SLC_BUFFER_VALUE_SHARD, op->unit, 0), b, version, "gathers old values");
        lanes_write(x, lanes_gathered(t, op), b, GARBAGE, version, "gathers into what is being written");
    }
}

TEST_INLINE void touch_item(touch *x)
{
    two_lanes *t = x->t;
    const slc_item *item = &t->program->items[x->item];
    if (item->kind == SLC_ITEM_SLOT) touch_slot(x, item);
    if (item->kind == SLC_ITEM_AGREE) {
        for (uint32_t u = 0; u < t->job->unit_count; u++) {
            uint64_t step = t->base + x->step + 1; /* a late agreement may find reductions of the next step */
            bool onebit = t->plan->strategies[u] == SLC_ONEBIT;
            bool all = (onebit && !t->job->refreshes) || t->reduced[u].step > step ||
                       (t->reduced[u].step == step && t->reduced[u].blocks == slc_unit_blocks(&t->job->units[u]));
            all = all && (!onebit || t->told[u] >= step);
            if (t->job->units[u].trainable && !all) lanes_fail(t, x->item, "agrees before all is reduced");
        }
        if (x->end) t->agreed = t->base + x->step + 1;
    }
    bool onebit = item->unit != SLC_NONE && t->plan->strategies[item->unit] == SLC_ONEBIT;
    if (onebit && item->kind != SLC_ITEM_ALL_REDUCE) touch_compressed(x, item);
    for (uint64_t b = item->first_block; b < item->first_block + item->block_count; b++) {
        if (b >= TEST_BLOCKS) continue;
        if (item->kind == SLC_ITEM_REDUCE_SCATTER || item->kind == SLC_ITEM_ALL_REDUCE) touch_reduction(x, item, b);
        if (item->kind == SLC_ITEM_UPDATE) touch_update(x, item, b);
        if (item->kind == SLC_ITEM_GATHER_GRADIENT || item->kind == SLC_ITEM_GATHER_VALUE ||
            item->kind == SLC_ITEM_GATHER_WINDOW)
            touch_gather(x, item, b);
    }
}

/* ---- Time ---- */

TEST_INLINE int lanes_lane(const slc_item *item)
{
    return item->kind == SLC_ITEM_SLOT || item->on_compute ? COMPUTE : COMMUNICATION;
}

/* The rows of a step's first look-up are told by the caller, when the slots of the step before are over. */
TEST_INLINE bool lanes_asks_caller(const two_lanes *t, const slc_item *item)
{
    return item->kind == SLC_ITEM_GATHER_WINDOW && !item->micro_batch && !t->evaluate &&
           t->job->units[item->unit].role == SLC_UNIT_ROWS;
}

TEST_INLINE bool lanes_may_start(const two_lanes *t, lanes_place place)
{
    const slc_item *i = &t->program->items[place.item];
    if (place.pass == t->passes && t->over[COMPUTE] < t->before_drain) return false;
    if (lanes_asks_caller(t, i) && place.pass && t->over[COMPUTE] < t->slots_end[place.pass - 1]) return false;
    for (uint32_t a = 0; a < i->after_count; a++) {
        if (i->after[a].previous && !place.pass) continue;
        int lane = lanes_lane(&t->program->items[i->after[a].item]);
        if (t->over[lane] < t->place[place.pass - i->after[a].previous][i->after[a].item]) return false;
    }
    return true;
}

typedef struct {
    uint32_t weight[4]; /* of starting on the compute lane, starting an operation, ending either */
    uint32_t depth;     /* operations that may be under way */
} lanes_speed;

TEST_INLINE lanes_speed lanes_draw_speed(test_dice *dice)
{
    static const uint32_t weights[] = {1, 8, 64};
    lanes_speed speed = {.depth = 1 + test_below(dice, 6)};
    for (int i = 0; i < 4; i++) speed.weight[i] = weights[test_below(dice, 3)];
    return speed;
}

TEST_INLINE void lanes_act(two_lanes *t, int action)
{
    int lane = action % 2;
    bool end = action >= 2;
    uint32_t *count = end ? &t->over[lane] : &t->begun[lane];
    lanes_place place = t->lane[lane][*count];
    touch x = {t, place.item, place.pass - t->program->items[place.item].late, end};
    if (!end) lanes_claim_all(t, place);
    touch_item(&x);
    if (end) lanes_release(t, place);
    (*count)++;
}

TEST_INLINE bool lanes_step_once(two_lanes *t, const lanes_speed *speed)
{
    bool can[4];
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t open = t->begun[lane] - t->over[lane], depth = lane == COMPUTE ? 1 : speed->depth;
        can[lane] =
            open < depth && t->begun[lane] < t->length[lane] && lanes_may_start(t, t->lane[lane][t->begun[lane]]);
        can[lane + 2] = open > 0;
    }
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) sum += can[i] ? speed->weight[i] : 0;
    if (!sum) return false;
    uint32_t draw = test_below(&t->dice, sum);
    for (int i = 0; i < 4; i++) {
        if (!can[i]) continue;
        if (draw < speed->weight[i]) {
            lanes_act(t, i);
            return true;
        }
        draw -= speed->weight[i];
    }
    return false;
}

/* Lists what each lane runs: pass 0 has no previous step, pass `passes` is the drain. */
TEST_INLINE void lanes_line_up(two_lanes *t)
{
    for (int lane = 0; lane < LANES; lane++) t->length[lane] = t->begun[lane] = t->over[lane] = 0;
    for (uint32_t pass = 0; pass <= t->passes; pass++) {
        t->before_drain = t->length[COMPUTE];
        for (uint32_t i = 0; i < t->program->item_count; i++) {
            const slc_item *item = &t->program->items[i];
            int lane = lanes_lane(item);
            t->place[pass][i] = 0;
            if (item->late ? !pass : pass == t->passes) continue;
            t->lane[lane][t->length[lane]++] = (lanes_place){i, pass};
            t->place[pass][i] = t->length[lane];
            if (item->kind == SLC_ITEM_SLOT) t->slots_end[pass] = t->length[lane];
        }
    }
}

/* Runs a program `passes` times without a pause, then drains it. */
TEST_INLINE void lanes_run(two_lanes *t, bool evaluate, uint32_t passes)
{
    t->program = evaluate ? &t->plan->evaluate : &t->plan->train;
    t->evaluate = evaluate;
    t->passes = passes;
    t->active_count = 0;
    if (t->program->item_count > TEST_ITEMS || t->program->claim_count > TEST_CLAIMS) {
        snprintf(t->error, sizeof t->error, "too large for this test");
        return;
    }
    lanes_line_up(t);
    lanes_speed speed = lanes_draw_speed(&t->dice);
    while (!t->error[0] && lanes_step_once(t, &speed)) continue;
    for (int lane = 0; !t->error[0] && lane < LANES; lane++)
        if (t->over[lane] < t->length[lane]) {
            lanes_place at = t->lane[lane][t->over[lane]];
            lanes_fail(t, at.item, "can never go on");
        }
    if (!t->error[0] && t->active_count) snprintf(t->error, sizeof t->error, "memory is held after a drain");
    if (!evaluate) t->base += passes;
}

TEST_INLINE void lanes_check_end(two_lanes *t)
{
    for (uint32_t u = 0; !t->error[0] && u < t->job->unit_count; u++) {
        const slc_unit *unit = &t->job->units[u];
        if (unit->role == SLC_UNIT_ROWS) continue;
        bool shard = t->plan->strategies[u] == SLC_FSDP;
        uint32_t value = lanes_buffer(t, shard ? SLC_BUFFER_VALUE_SHARD : SLC_BUFFER_VALUE, u, 0);
        for (uint64_t b = 0; b < slc_unit_blocks(unit); b++)
            if (t->tag[value][b] != (unit->trainable ? (int64_t)t->base : 0))
                snprintf(t->error, sizeof t->error, "unit %s, block %u: not updated", unit->name, (unsigned)b);
    }
}

TEST_INLINE bool lanes_starts_at_zero(slc_buffer_kind kind)
{
    return kind == SLC_BUFFER_VALUE || kind == SLC_BUFFER_VALUE_SHARD || kind == SLC_BUFFER_STATE ||
           kind == SLC_BUFFER_WORKER_ERROR || kind == SLC_BUFFER_SERVER_ERROR;
}

/* Runs steps, evaluation passes and steps, with drains in between. t->error holds the result. `t` is large: do not keep
 * it on the stack. */
TEST_INLINE void two_lanes_run(two_lanes *t, const slc_job *job, const slc_plan *plan, uint64_t seed)
{
    t->job = job;
    t->plan = plan;
    t->dice = (test_dice){.seed = seed};
    t->base = t->agreed = t->peak = 0;
    t->error[0] = 0;
    memset(t->own, 0, sizeof t->own);
    memset(t->reduced, 0, sizeof t->reduced);
    memset(t->told, 0, sizeof t->told);
    lanes_find_buffers(t);
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        for (int k = 0; k < TEST_BLOCKS; k++) t->tag[b][k] = lanes_starts_at_zero(plan->buffers[b].kind) ? 0 : GARBAGE;
    for (uint32_t s = 0; s < plan->static_count; s++) {
        uint64_t end = plan->buffers[plan->statics[s].buffer].offset + plan->statics[s].end_byte;
        if (end > t->peak) t->peak = end;
    }
    static const bool evaluate[] = {false, true, false, false};
    for (int r = 0; r < 4 && !t->error[0]; r++) lanes_run(t, evaluate[r], 1 + test_below(&t->dice, TEST_PASSES - 1));
    lanes_check_end(t);
}

#endif
