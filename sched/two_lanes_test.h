/* Runs a plan as two lanes would, at random speeds, and looks at what really happens: memory is claimed when an item
 * starts and released when one ends; every value, gradient and activation carries a tag that says what it is, so that
 * reading the wrong one, or one that is being written, is seen. It knows nothing of what the planner or the validator
 * think. Operations start in order, several may be under way, and they end in order. */
#ifndef SLC_TWO_LANES_TEST_H
#define SLC_TWO_LANES_TEST_H

#include "sched/random_job_test.h"

#include <stdlib.h>

enum { TEST_BUFFERS = 512, TEST_CLAIMS = 1024, TEST_ITEMS = 1024 };
enum { GARBAGE = -1, STEP_TAGS = 1000, REDUCED_TAG = 500 };

typedef struct {
    bool active;
    uint64_t step;
} lanes_claim;

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    const slc_program *program;
    bool evaluate;
    test_dice dice;
    int64_t tag[TEST_BUFFERS][TEST_BLOCKS]; /* GARBAGE; -2 - item: being written by it */
    int64_t own[TEST_UNITS][TEST_BLOCKS];   /* version of the own part of the values */
    uint32_t reduced[TEST_UNITS];           /* blocks of this unit's last reduction, ever */
    uint64_t agreed;                        /* steps */
    uint64_t base;                          /* steps trained before this run of the program */
    lanes_claim claims[TEST_CLAIMS];
    uint32_t slots[TEST_ITEMS], operations[TEST_ITEMS], ordinal[TEST_ITEMS]; /* items of each lane; places there */
    uint64_t slots_a_step, operations_a_step, steps;
    uint64_t slots_begun, slots_over, operations_begun, operations_over; /* in this run */
    uint64_t peak;
    char error[200]; /* the first thing that went wrong; empty: nothing */
} two_lanes;

TEST_INLINE void lanes_fail(two_lanes *t, uint32_t item, const char *what)
{
    const slc_item *i = &t->program->items[item];
    if (!t->error[0])
        snprintf(t->error, sizeof t->error, "%s item %u (%s, micro-batch %u, slot %u, unit %d): %s",
                 t->evaluate ? "evaluation" : "step", item, slc_item_kind_name(i->kind), i->micro_batch, i->slot,
                 (int)i->unit, what);
}

/* ---- Memory ---- */

TEST_INLINE uint32_t lanes_buffer(const two_lanes *t, slc_buffer_kind kind, uint32_t unit, uint32_t index)
{
    return slc_plan_buffer(t->plan, kind, unit, index);
}

TEST_INLINE bool lanes_is_claimed(const two_lanes *t, uint32_t buffer)
{
    for (uint32_t s = 0; s < t->plan->static_count; s++)
        if (t->plan->statics[s].buffer == buffer) return true;
    for (uint32_t c = 0; c < t->program->claim_count; c++) {
        const slc_claim *claim = &t->program->claims[c];
        if (t->claims[c].active && claim->buffer == buffer && !claim->first_byte &&
            claim->end_byte == t->plan->buffers[buffer].bytes)
            return true;
    }
    return false;
}

TEST_INLINE bool lanes_overlap(const slc_plan *plan, const slc_claim *a, const slc_claim *b)
{
    uint64_t x = plan->buffers[a->buffer].offset, y = plan->buffers[b->buffer].offset;
    return x + a->first_byte < y + b->end_byte && y + b->first_byte < x + a->end_byte;
}

TEST_INLINE void lanes_claim_one(two_lanes *t, uint32_t item, uint32_t c, uint64_t step)
{
    const slc_claim *claim = &t->program->claims[c];
    if (t->claims[c].active) lanes_fail(t, item, "claims what is claimed already");
    for (uint32_t d = 0; d < t->program->claim_count; d++)
        if (t->claims[d].active && lanes_overlap(t->plan, claim, &t->program->claims[d]))
            lanes_fail(t, item, "claims memory that another buffer holds");
    for (uint32_t s = 0; s < t->plan->static_count; s++)
        if (lanes_overlap(t->plan, claim, &t->plan->statics[s])) lanes_fail(t, item, "claims resident memory");
    t->claims[c] = (lanes_claim){true, step};
    for (int b = 0; b < TEST_BLOCKS; b++) t->tag[claim->buffer][b] = GARBAGE;
    uint64_t end = t->plan->buffers[claim->buffer].offset + claim->end_byte;
    if (end > t->peak) t->peak = end;
}

TEST_INLINE void lanes_claim_all(two_lanes *t, uint32_t item, uint64_t step)
{
    for (uint32_t c = 0; c < t->program->claim_count; c++)
        if (t->program->claims[c].from == item) lanes_claim_one(t, item, c, step);
}

TEST_INLINE void lanes_release(two_lanes *t, uint32_t item, uint64_t step)
{
    for (uint32_t c = 0; c < t->program->claim_count; c++) {
        if (t->program->claims[c].to != item) continue;
        if (!t->claims[c].active || t->claims[c].step != step) lanes_fail(t, item, "releases what it never claimed");
        t->claims[c].active = false;
    }
}

/* ---- Data ---- */

typedef struct {
    two_lanes *t;
    uint32_t item;
    uint64_t step;
    bool end; /* else the item's start */
} touch;

TEST_INLINE int64_t *lanes_tag(touch *x, uint32_t buffer, uint64_t block)
{
    if (buffer == SLC_NONE || !lanes_is_claimed(x->t, buffer)) {
        lanes_fail(x->t, x->item, "touches memory that is not claimed");
        return &x->t->tag[TEST_BUFFERS - 1][0];
    }
    return &x->t->tag[buffer][block];
}

/* Reads stay as they are from start to end. */
TEST_INLINE void lanes_read(touch *x, uint32_t buffer, uint64_t block, int64_t wanted, const char *what)
{
    if (*lanes_tag(x, buffer, block) != wanted) lanes_fail(x->t, x->item, what);
}

/* wanted: what must be there before; GARBAGE: anything that is not being written. */
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
            buffer = lanes_buffer(x->t, SLC_BUFFER_GATHERED, u, w);
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

TEST_INLINE void touch_activations(touch *x, const slc_item *slot)
{
    const slc_job *job = x->t->job;
    int64_t tag = lanes_step_tag(x) + slot->micro_batch;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        uint32_t last = x->t->evaluate ? life->last_forward_slot : life->last_slot;
        if (slot->slot < life->first_slot || slot->slot > last) continue;
        uint32_t buffer = lanes_buffer(x->t, SLC_BUFFER_ACTIVATION, SLC_NONE, a);
        if (slot->slot == life->first_slot)
            lanes_write(x, buffer, 0, GARBAGE, tag, "writes an activation that another one writes");
        else
            lanes_read(x, buffer, 0, tag, "reads an activation that is gone");
    }
    for (uint32_t w = 0; w < job->workspace_count; w++)
        if (job->workspaces[w].layer == slc_slot_layer(job, slot->slot))
            lanes_tag(x, lanes_buffer(x->t, SLC_BUFFER_WORKSPACE, SLC_NONE, w), 0);
}

TEST_INLINE void touch_slot(touch *x, const slc_item *slot)
{
    const slc_job *job = x->t->job;
    bool forward = slc_slot_is_forward(job, slot->slot);
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t n = 0; n < job->units[u].use_count; n++) {
            if (job->units[u].uses[n].layer != slc_slot_layer(job, slot->slot)) continue;
            if (forward || job->units[u].uses[n].backward_value) touch_values(x, u, slot);
            if (!forward && job->units[u].trainable) touch_gradient(x, u, n, slot);
        }
    touch_activations(x, slot);
}

TEST_INLINE void touch_reduction(touch *x, const slc_item *op, uint64_t b)
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
    if (x->end && op->micro_batch + 1 == job->micro_batches) x->t->reduced[op->unit]++;
}

TEST_INLINE void touch_update(touch *x, const slc_item *op, uint64_t b)
{
    two_lanes *t = x->t;
    slc_strategy k = t->plan->strategies[op->unit];
    int64_t tag = lanes_step_tag(x), version = lanes_version(x, &t->job->units[op->unit]);
    uint32_t reduced = lanes_buffer(t, SLC_BUFFER_REDUCED, op->unit, 0);
    if (reduced != SLC_NONE && k != SLC_DP)
        lanes_read(x, reduced, b, tag + (t->job->each ? t->job->micro_batches : 1), "updates by a wrong gradient");
    else
        lanes_read(x, lanes_buffer(t, SLC_BUFFER_GRADIENT, op->unit, 0), b, tag + REDUCED_TAG,
                   "updates by a wrong gradient");
    if (t->job->barrier && t->agreed != t->base + x->step + 1) lanes_fail(t, x->item, "updates before all agree");
    uint32_t value = lanes_buffer(t, k == SLC_FSDP ? SLC_BUFFER_VALUE_SHARD : SLC_BUFFER_VALUE, op->unit, 0);
    bool whole = k == SLC_DP || k == SLC_FSDP; /* else the other parts are still old */
    lanes_write(x, value, b, version, whole ? version + 1 : INT64_MAX, "updates values twice or too early");
    if (x->end) t->own[op->unit][b] = version + 1;
}

TEST_INLINE void touch_gather(touch *x, const slc_item *op, uint64_t b)
{
    two_lanes *t = x->t;
    int64_t tag = lanes_step_tag(x), version = lanes_version(x, &t->job->units[op->unit]);
    if (op->kind == SLC_ITEM_GATHER_GRADIENT) {
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
        lanes_write(x, lanes_buffer(t, SLC_BUFFER_GATHERED, op->unit, op->index), b, GARBAGE, version,
                    "gathers into what is being written");
    }
}

TEST_INLINE void touch_item(touch *x)
{
    two_lanes *t = x->t;
    const slc_item *item = &t->program->items[x->item];
    if (item->kind == SLC_ITEM_SLOT) touch_slot(x, item);
    if (item->kind == SLC_ITEM_AGREE) {
        for (uint32_t u = 0; u < t->job->unit_count; u++)
            if (t->job->units[u].trainable &&
                t->reduced[u] != (t->base + x->step + 1) * slc_unit_blocks(&t->job->units[u]))
                lanes_fail(t, x->item, "agrees before all is reduced");
        if (x->end) t->agreed = t->base + x->step + 1;
    }
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

TEST_INLINE bool lanes_is_over(const two_lanes *t, uint64_t step, uint32_t item)
{
    return t->program->items[item].kind == SLC_ITEM_SLOT
               ? t->slots_over > step * t->slots_a_step + t->ordinal[item]
               : t->operations_over > step * t->operations_a_step + t->ordinal[item];
}

TEST_INLINE bool lanes_may_start(const two_lanes *t, uint64_t step, uint32_t item)
{
    const slc_item *i = &t->program->items[item];
    for (uint32_t a = 0; a < i->after_count; a++) {
        if (i->after[a].previous && !step) continue;
        if (!lanes_is_over(t, i->after[a].previous ? step - 1 : step, i->after[a].item)) return false;
    }
    return true;
}

typedef struct {
    uint32_t weight[4]; /* start a slot, start an operation, end a slot, end an operation */
    uint32_t depth;     /* operations under way */
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
    bool slot = action % 2 == 0, end = action >= 2;
    uint64_t number = slot ? (end ? t->slots_over : t->slots_begun) : end ? t->operations_over : t->operations_begun;
    uint64_t a_step = slot ? t->slots_a_step : t->operations_a_step;
    touch x = {t, (slot ? t->slots : t->operations)[number % a_step], number / a_step, end};
    if (!end) lanes_claim_all(t, x.item, x.step);
    touch_item(&x);
    if (end) lanes_release(t, x.item, x.step);
    *(slot ? (end ? &t->slots_over : &t->slots_begun) : end ? &t->operations_over : &t->operations_begun) += 1;
}

TEST_INLINE bool lanes_step_once(two_lanes *t, const lanes_speed *speed)
{
    uint64_t s = t->slots_begun, o = t->operations_begun;
    bool can[4] = {
        s == t->slots_over && s < t->steps * t->slots_a_step &&
            lanes_may_start(t, s / t->slots_a_step, t->slots[s % t->slots_a_step]),
        o - t->operations_over < speed->depth && o < t->steps * t->operations_a_step &&
            lanes_may_start(t, o / t->operations_a_step, t->operations[o % t->operations_a_step]),
        s > t->slots_over,
        o > t->operations_over,
    };
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

/* Runs a program `steps` times without a pause between. */
TEST_INLINE void lanes_run(two_lanes *t, bool evaluate, uint64_t steps)
{
    t->program = evaluate ? &t->plan->evaluate : &t->plan->train;
    t->evaluate = evaluate;
    t->steps = steps;
    t->slots_a_step = t->operations_a_step = 0;
    t->slots_begun = t->slots_over = t->operations_begun = t->operations_over = 0;
    memset(t->claims, 0, sizeof t->claims);
    for (uint32_t i = 0; i < t->program->item_count; i++) {
        bool slot = t->program->items[i].kind == SLC_ITEM_SLOT;
        t->ordinal[i] = (uint32_t)(slot ? t->slots_a_step : t->operations_a_step);
        if (slot)
            t->slots[t->slots_a_step++] = i;
        else
            t->operations[t->operations_a_step++] = i;
    }
    lanes_speed speed = lanes_draw_speed(&t->dice);
    while (!t->error[0] && lanes_step_once(t, &speed)) continue;
    if (!t->error[0] && (t->slots_over < steps * t->slots_a_step || t->operations_over < steps * t->operations_a_step))
        snprintf(t->error, sizeof t->error, "nothing can go on");
    if (!evaluate) t->base += steps;
}

TEST_INLINE void lanes_check_end(two_lanes *t)
{
    for (uint32_t u = 0; !t->error[0] && u < t->job->unit_count; u++) {
        const slc_unit *unit = &t->job->units[u];
        bool shard = t->plan->strategies[u] == SLC_FSDP;
        uint32_t value = lanes_buffer(t, shard ? SLC_BUFFER_VALUE_SHARD : SLC_BUFFER_VALUE, u, 0);
        for (uint64_t b = 0; b < slc_unit_blocks(unit); b++)
            if (t->tag[value][b] != (unit->trainable ? (int64_t)t->base : 0))
                snprintf(t->error, sizeof t->error, "unit %s, block %u: not updated", unit->name, (unsigned)b);
    }
}

/* Steps, evaluation passes, steps. The result is t->error. `t` is large: keep it off the stack. */
TEST_INLINE void two_lanes_run(two_lanes *t, const slc_job *job, const slc_plan *plan, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->job = job;
    t->plan = plan;
    t->dice = (test_dice){.seed = seed};
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        for (int k = 0; k < TEST_BLOCKS; k++)
            t->tag[b][k] = plan->buffers[b].kind == SLC_BUFFER_VALUE || plan->buffers[b].kind == SLC_BUFFER_VALUE_SHARD
                               ? 0
                               : GARBAGE;
    for (uint32_t s = 0; s < plan->static_count; s++) {
        uint64_t end = plan->buffers[plan->statics[s].buffer].offset + plan->statics[s].end_byte;
        if (end > t->peak) t->peak = end;
    }
    static const struct {
        bool evaluate;
        uint64_t passes;
    } runs[] = {{false, 3}, {true, 2}, {false, 2}};
    for (int r = 0; r < 3 && !t->error[0]; r++) lanes_run(t, runs[r].evaluate, runs[r].passes);
    lanes_check_end(t);
}

#endif
