#include "tests/support/sched/lanes_touch.h"

#include "lib/plan/roles.h"
#include "lib/plan/strategy_table.h"
#include "tests/support/sched/lanes_memory.h"

/* ---- What a step leaves out ---- */

static bool lanes_leaves_layer_out(const touch *x, uint32_t layer)
{
    const two_lanes *t = x->t;
    if (!t->left_out || t->evaluate) return false;
    return t->left_out[(t->base + x->step) % t->left_out_steps * t->job->layer_count + layer];
}

/* A unit that layers share as a whole, and parts of a split one, are in every step. */
static bool lanes_leaves_unit_out(const touch *x, const slc_unit *unit)
{
    uint32_t runs = unit->role != SLC_UNIT_WHOLE || (!unit->fused && unit->use_count > 1);
    for (uint32_t n = 0; n < unit->use_count; n++) runs += !lanes_leaves_layer_out(x, unit->uses[n].layer);
    return !runs;
}

static bool lanes_leaves_out(const touch *x, const slc_item *item)
{
    if (item->kind == SLC_ITEM_SLOT) return lanes_leaves_layer_out(x, slc_slot_layer(x->t->job, item->slot));
    return item->unit != SLC_NONE && lanes_leaves_unit_out(x, &x->t->job->units[item->unit]);
}

/* ---- Tags ---- */

static int64_t *lanes_tag(touch *x, uint32_t buffer, uint64_t block)
{
    if (buffer == SLC_NONE || !lanes_is_claimed(x->t, buffer, block)) {
        lanes_fail(x->t, x->item, "touches memory that is not claimed");
        return &x->t->tag[TEST_BUFFERS - 1][0];
    }
    return &x->t->tag[buffer][block];
}

/* A block that is read must stay as it is from the item's start to its end. */
static void lanes_read(touch *x, uint32_t buffer, uint64_t block, int64_t wanted, const char *what)
{
    if (*lanes_tag(x, buffer, block) != wanted) lanes_fail(x->t, x->item, what);
}

/* `wanted` is the tag that must be there before; GARBAGE: any that is not being written. */
static void lanes_write(touch *x, uint32_t buffer, uint64_t block, int64_t wanted, int64_t result, const char *what)
{
    int64_t *tag = lanes_tag(x, buffer, block), mine = -2 - (int64_t)x->item;
    if (x->end ? *tag != mine : wanted == GARBAGE ? *tag < GARBAGE : *tag != wanted) lanes_fail(x->t, x->item, what);
    *tag = x->end ? result : mine;
}

static int64_t lanes_version(const touch *x, const slc_unit *unit)
{
    return unit->trainable ? (int64_t)(x->t->base + (x->t->evaluate ? 0 : x->step)) : 0;
}

static int64_t lanes_step_tag(const touch *x)
{
    return (int64_t)(x->t->base + x->step + 1) * STEP_TAGS;
}

static void touch_values(touch *x, uint32_t u, const slc_item *slot)
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

static void touch_gradient(touch *x, uint32_t u, uint32_t use, const slc_item *slot)
{
    const slc_job *job = x->t->job;
    const slc_unit *unit = &job->units[u];
    int64_t before = (job->each ? 0 : slot->micro_batch * unit->use_count) + (unit->use_count - 1 - use);
    for (uint64_t b = 0; b < slc_unit_blocks(unit); b++)
        lanes_write(x, lanes_buffer(x->t, SLC_BUFFER_GRADIENT, u, 0), b, before ? lanes_step_tag(x) + before : GARBAGE,
                    lanes_step_tag(x) + before + 1, "adds to a gradient that is not what was there before");
}

static bool lanes_recomputes(const two_lanes *t, uint32_t layer)
{
    return !t->evaluate && t->plan->recompute && t->plan->recompute[layer];
}

static void touch_activations(touch *x, const slc_item *slot)
{
    const slc_job *job = x->t->job;
    int64_t tag = lanes_step_tag(x) + slot->micro_batch;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        uint32_t last = x->t->evaluate ? life->last_forward_slot : life->last_slot;
        bool again = life->recomputable && lanes_recomputes(x->t, slc_slot_layer(job, life->first_slot));
        if (slot->slot < life->first_slot || slot->slot > last) continue;
        if (lanes_leaves_layer_out(x, slc_slot_layer(job, life->first_slot))) continue; /* nobody has made it */
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

static void touch_slot(touch *x, const slc_item *slot)
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
static uint32_t lanes_split_sum(const two_lanes *t, uint32_t u)
{
    uint32_t reduced = lanes_buffer(t, SLC_BUFFER_REDUCED, u, 0);
    return reduced == SLC_NONE ? lanes_buffer(t, SLC_BUFFER_GRADIENT, u, 0) : reduced;
}

static int64_t lanes_split_tag(const touch *x, uint32_t sums, bool own)
{
    return lanes_step_tag(x) + REDUCED_TAG + 2 * (int64_t)sums + own;
}

/* The reduction of a split parameter adds both uses' gradients of each micro-batch in turn. */
static void touch_split_reduction(touch *x, const slc_item *op, uint64_t b)
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
static int64_t lanes_list_tag(const touch *x, uint32_t micro_batch)
{
    return lanes_step_tag(x) + micro_batch + 1;
}

static void touch_rows_reduction(touch *x, const slc_item *op)
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

static void touch_rows_gather(touch *x, const slc_item *op)
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

static void touch_whole_reduction(touch *x, const slc_item *op, uint64_t b)
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

static void touch_reduction(touch *x, const slc_item *op, uint64_t b)
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

static bool lanes_waits(const two_lanes *t, uint32_t u)
{
    return t->job->barrier && !(t->plan->strategies[u] == SLC_ONEBIT && t->job->norms_barrier);
}

/* Two operations change the states: compressing makes their tags odd, updating makes them even again. */
static void touch_states(touch *x, uint32_t u, int64_t before)
{
    for (uint32_t s = 0; s < x->t->job->states; s++)
        lanes_write(x, lanes_buffer(x->t, SLC_BUFFER_STATE, u, s), 0, before, before + 1,
                    "changes states that are not those of this step");
}

static void touch_own_gradient(touch *x, uint32_t u)
{
    const slc_job *job = x->t->job;
    int64_t full = job->refreshes ? REDUCED_TAG : job->units[u].use_count * job->micro_batches;
    for (uint64_t b = 0; b < slc_unit_blocks(&job->units[u]); b++)
        lanes_read(x, lanes_buffer(x->t, SLC_BUFFER_GRADIENT, u, 0), b, lanes_step_tag(x) + full,
                   "reads a gradient that is not complete");
}

static void touch_compressed(touch *x, const slc_item *op)
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

static void touch_update(touch *x, const slc_item *op, uint64_t b)
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

static void touch_gather(touch *x, const slc_item *op, uint64_t b)
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

/* A slot that is left out adds nothing to gradients that move all the same, which makes them complete. Values that are
 * not updated are the next step's as they are. */
static void touch_nothing(touch *x, const slc_item *item)
{
    two_lanes *t = x->t;
    const bool backward = item->kind == SLC_ITEM_SLOT && !slc_slot_is_forward(t->job, item->slot);
    for (uint32_t u = 0; backward && u < t->job->unit_count; u++)
        for (uint32_t n = 0; n < t->job->units[u].use_count; n++)
            if (t->job->units[u].uses[n].layer == slc_slot_layer(t->job, item->slot) && t->job->units[u].trainable &&
                !lanes_leaves_unit_out(x, &t->job->units[u]))
                touch_gradient(x, u, n, item);
    if (item->kind != SLC_ITEM_UPDATE || !x->end) return;
    const int64_t version = lanes_version(x, &t->job->units[item->unit]);
    const bool shard = t->plan->strategies[item->unit] == SLC_FSDP;
    const uint32_t value = lanes_buffer(t, shard ? SLC_BUFFER_VALUE_SHARD : SLC_BUFFER_VALUE, item->unit, 0);
    for (uint64_t b = item->first_block; b < item->first_block + item->block_count; b++) {
        if (b >= TEST_BLOCKS) continue;
        if (t->tag[value][b] != version) lanes_fail(t, x->item, "finds values changed in a step that leaves them out");
        t->tag[value][b] = t->own[item->unit][b] = version + 1;
    }
}

void touch_item(touch *x)
{
    two_lanes *t = x->t;
    const slc_item *item = &t->program->items[x->item];
    if (lanes_leaves_out(x, item)) {
        touch_nothing(x, item);
        return;
    }
    if (item->kind == SLC_ITEM_SLOT) touch_slot(x, item);
    if (item->kind == SLC_ITEM_AGREE) {
        for (uint32_t u = 0; u < t->job->unit_count; u++) {
            uint64_t step = t->base + x->step + 1; /* a late agreement may find reductions of the next step */
            bool onebit = t->plan->strategies[u] == SLC_ONEBIT;
            bool all = (onebit && !t->job->refreshes) || t->reduced[u].step > step ||
                       lanes_leaves_unit_out(x, &t->job->units[u]) ||
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
