/* Draws any legal order from a seed, for tests: every kind of operation of every unit is cut into runs of its own, some
 * runs are late, and slots and operations are drawn one by one from those whose predecessors have been drawn.
 * schedulers_test.c covers this file. */
#include "lib/base/numbers/random.h"
#include "lib/plan/strategy_table.h"
#include "sched/scheduler.h"

#include <stdlib.h>

enum { MOST_RUNS = 3 };

typedef struct {
    uint32_t before, after; /* items */
} edge;

typedef struct {
    const slc_scheduling *in;
    const slc_job *job;
    bool evaluate;
    uint64_t drawn;
    uint32_t slots_a_pass, slots; /* items [0, slots) are the slots */
    slc_order items;              /* all items, not yet in order */
    edge *edges;                  /* sorted by `before` at the end */
    size_t edge_count, edge_capacity;
    bool failed;
} draft;

static uint32_t draw(draft *d, uint64_t limit)
{
    return (uint32_t)slc_random_below(d->in->seed, d->evaluate, d->drawn++, limit);
}

static void must_precede(draft *d, uint32_t before, uint32_t after)
{
    if (d->edge_count == d->edge_capacity) {
        size_t capacity = d->edge_capacity ? 2 * d->edge_capacity : 256;
        edge *edges = realloc(d->edges, capacity * sizeof *edges);
        if (!edges) {
            d->failed = true;
            return;
        }
        d->edges = edges;
        d->edge_capacity = capacity;
    }
    d->edges[d->edge_count++] = (edge){before, after};
}

static uint32_t slot_item(const draft *d, uint32_t micro_batch, uint32_t slot)
{
    return micro_batch * d->slots_a_pass + slot;
}

/* ---- Runs ---- */

/* Items [first, end): the runs of one kind, unit, micro-batch and window. */
typedef struct {
    uint32_t first, end;
} runs;

static bool any_late(const draft *d, runs of, const slc_item *item)
{
    for (uint32_t i = of.first; i < of.end; i++)
        if (d->items.items[i].late && slc_share_blocks(&d->items.items[i], item)) return true;
    return false;
}

/* A run comes after the runs in `before` that share blocks with it, if both are late or neither is. */
static void runs_precede(draft *d, runs before, runs after)
{
    for (uint32_t i = before.first; i < before.end; i++)
        for (uint32_t k = after.first; k < after.end; k++)
            if (slc_share_blocks(&d->items.items[i], &d->items.items[k]) &&
                d->items.items[i].late == d->items.items[k].late)
                must_precede(d, i, k);
}

/* Adds runs of a kind. `before` holds the previous operations on these blocks; a run is late if one of them is, else by
 * chance. onebit moves whole units. */
static runs add_runs(draft *d, slc_item_kind kind, uint32_t m, uint32_t u, uint32_t index, bool may_be_late,
                     runs before)
{
    runs all = {.first = d->items.count};
    uint64_t blocks = slc_unit_blocks(&d->job->units[u]), first = 0;
    uint32_t most = slc_exchanges(d->in->strategies[u]) ? 1 : MOST_RUNS;
    for (uint32_t left = 1 + draw(d, most); first < blocks; left--) {
        uint64_t count = left > 1 ? 1 + draw(d, blocks - first) : blocks - first;
        slc_item item = {.kind = kind, .unit = u, .first_block = first, .block_count = count};
        bool late = may_be_late && slc_may_be_late(d->job, &item) && (any_late(d, before, &item) || draw(d, 3) == 0);
        slc_order_run(&d->items, kind, late, m, u, index, first, count);
        first += count;
    }
    all.end = d->items.count;
    d->failed = d->failed || d->items.failed;
    if (d->failed) return (runs){0, 0};
    runs_precede(d, before, all);
    return all;
}

/* ---- The rules of precedence ---- */

static void add_windows(draft *d, uint32_t u, runs updates)
{
    const slc_unit *unit = &d->job->units[u];
    slc_window w;
    for (uint32_t i = 0; slc_unit_window(d->job, unit, !d->evaluate, i, &w); i++)
        for (uint32_t m = 0; m < d->slots / d->slots_a_pass; m++) {
            runs gathers = add_runs(d, SLC_ITEM_GATHER_WINDOW, m, u, i, false, (runs){0, 0});
            for (uint32_t g = gathers.first; g < gathers.end; g++) {
                must_precede(d, g, slot_item(d, m, w.first_slot));
                if (m) must_precede(d, slot_item(d, m - 1, w.last_slot), g);
                for (uint32_t k = updates.first; k < updates.end; k++) /* late ones are of the step before */
                    if (d->items.items[k].late && slc_share_blocks(&d->items.items[k], &d->items.items[g]))
                        must_precede(d, k, g);
            }
        }
}

/* The agreement comes after the reductions of its step, and a late one before those of the next step. */
static void precede_agreement(draft *d, runs reductions, uint32_t agreement)
{
    bool late = d->items.items[agreement].late;
    for (uint32_t i = reductions.first; i < reductions.end; i++) {
        if (d->items.items[i].late == late)
            must_precede(d, i, agreement);
        else if (late)
            must_precede(d, agreement, i);
    }
}

/* Adds the reductions of every micro-batch that has them, and returns those of the last one. Earlier ones cannot be
 * late, because the next micro-batch adds to the same gradient. */
static runs add_reductions(draft *d, uint32_t u, slc_item_kind kind)
{
    const slc_job *job = d->job;
    uint32_t first, last, m = job->each ? 0 : job->micro_batches - 1;
    runs reductions = {0, 0};
    slc_unit_gradient_slots(job, &job->units[u], &first, &last);
    for (; m < job->micro_batches; m++) {
        bool may_be_late = m + 1 == job->micro_batches && !job->barrier;
        reductions = add_runs(d, kind, m, u, 0, may_be_late, reductions);
        for (uint32_t i = reductions.first; i < reductions.end; i++) {
            if (!d->items.items[i].late) must_precede(d, slot_item(d, m, last), i);
            if (m + 1 < job->micro_batches) must_precede(d, i, slot_item(d, m + 1, first));
        }
    }
    return reductions;
}

/* Adds the operations of a onebit unit, from the gradient's last slot to the exchange. Those that must come before the
 * agreement (`agreed`) are items in a row, and so are those that may come after it (*after). */
static runs add_exchange(draft *d, uint32_t u, const slc_unit_operations *of, runs *agreed, runs *after)
{
    const slc_item_kind kinds[] = {of->reduce, of->inspect, of->compress, of->exchange};
    const slc_job *job = d->job;
    uint32_t first, last, m = job->micro_batches - 1;
    runs chain = {0, 0};
    slc_unit_gradient_slots(job, &job->units[u], &first, &last);
    *agreed = (runs){d->items.count, d->items.count};
    for (int k = 0; k < 4; k++) {
        if (kinds[k] == SLC_ITEM_KINDS) continue;
        bool precedes = slc_precedes_agreement(job, kinds[k]);
        chain = add_runs(d, kinds[k], m, u, 0, !(precedes && job->barrier), chain);
        for (uint32_t i = chain.first; i < chain.end; i++)
            if (!d->items.items[i].late) must_precede(d, slot_item(d, m, last), i);
        if (precedes) agreed->end = chain.end;
    }
    *after = (runs){agreed->end, chain.end};
    return chain;
}

/* Adds all operations of a unit. `reductions`: those that come before the agreement in the last micro-batch; `updates`:
 * those that may have to come after it. */
static void add_unit(draft *d, uint32_t u, runs *reductions, runs *updates)
{
    const slc_unit *unit = &d->job->units[u];
    slc_unit_operations of = slc_operations_of(d->job, unit, d->in->strategies[u]);
    uint32_t last = d->job->micro_batches - 1, needs = slot_item(d, 0, slc_forward_slot(unit->uses[0].layer));
    runs none = {0, 0}, chain;
    if (unit->trainable && !d->evaluate) {
        if (of.compress != SLC_ITEM_KINDS)
            chain = add_exchange(d, u, &of, reductions, updates);
        else
            chain = *reductions = add_reductions(d, u, of.reduce);
        if (of.gather_gradient != SLC_ITEM_KINDS) chain = add_runs(d, of.gather_gradient, last, u, 0, true, chain);
        if (of.update != SLC_ITEM_KINDS) {
            chain = add_runs(d, of.update, last, u, 0, true, chain);
            *updates = (runs){of.compress != SLC_ITEM_KINDS ? updates->first : chain.first, chain.end};
        }
        if (of.gather_value != SLC_ITEM_KINDS) chain = add_runs(d, of.gather_value, last, u, 0, true, chain);
        for (uint32_t i = chain.first; i < chain.end; i++)
            if (d->items.items[i].late) must_precede(d, i, needs);
    } else
        chain = none;
    if (of.windows) add_windows(d, u, unit->trainable && !d->evaluate ? *updates : none);
}

/* The agreement is late if any reduction is, never with a barrier, else by chance. */
static void add_agreement(draft *d, const runs *reductions, const runs *updates)
{
    const slc_job *job = d->job;
    uint32_t agreement = d->items.count;
    bool late = !job->barrier && draw(d, 4) == 0;
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t i = reductions[u].first; i < reductions[u].end; i++) late = late || d->items.items[i].late;
    slc_order_run(&d->items, SLC_ITEM_AGREE, late, job->micro_batches - 1, SLC_NONE, 0, 0, 0);
    if (d->items.failed) return;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        precede_agreement(d, reductions[u], agreement);
        for (uint32_t i = updates[u].first; i < updates[u].end && slc_waits_for_agreement(job, d->in->strategies[u]);
             i++)
            if (!d->items.items[i].late) must_precede(d, agreement, i);
    }
}

/* Returns true if `item` must come after `other` because their units are partners, or because it gathers rows, which
 * are named when the previous micro-batch has been computed and whose lists are in use until that one is reduced. */
static bool comes_after(const slc_job *job, const slc_item *item, const slc_item *other)
{
    const slc_unit *unit = &job->units[item->unit];
    const slc_partner_wait *wait = slc_partner_wait_of(unit, item->kind);
    uint32_t back = wait && wait->when == SLC_MICRO_BATCH_BEFORE;
    if (wait && wait->when != SLC_STEP_BEFORE && other->kind == wait->of_partner && other->unit == unit->partner)
        return other->micro_batch + back == item->micro_batch;
    if (!slc_looks_up(unit) || item->kind != SLC_ITEM_GATHER_WINDOW || other->micro_batch + 1 != item->micro_batch)
        return false;
    if (other->kind == SLC_ITEM_SLOT) return other->slot + 1 == slc_job_slots(job);
    return other->kind == SLC_ITEM_REDUCE_SCATTER && other->unit == item->unit;
}

static void place_split_units(draft *d)
{
    const slc_item *items = d->items.items;
    for (uint32_t i = 0; i < d->items.count; i++)
        for (uint32_t k = 0; items[i].unit != SLC_NONE && k < d->items.count; k++)
            if (comes_after(d->job, &items[i], &items[k])) must_precede(d, k, i);
}

static void add_all(draft *d)
{
    const slc_job *job = d->job;
    runs *reductions = calloc(2 * (size_t)job->unit_count + 1, sizeof *reductions);
    d->failed = !reductions;
    for (uint32_t s = 0; s < d->slots; s++) {
        slc_order_slot(&d->items, s / d->slots_a_pass, s % d->slots_a_pass);
        if (s) must_precede(d, s - 1, s);
    }
    for (uint32_t u = 0; u < job->unit_count && !d->failed; u++)
        add_unit(d, u, &reductions[u], &reductions[job->unit_count + u]);
    if (!d->evaluate && !d->failed) add_agreement(d, reductions, reductions + job->unit_count);
    if (!d->failed) place_split_units(d);
    d->failed = d->failed || d->items.failed;
    free(reductions);
}

/* ---- Drawing the order ---- */

static int by_before(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return (x->before > y->before) - (x->before < y->before);
}

/* Draws the next item. Slots are drawn as often as operations, much less often or much more often, so that operations
 * tend to be early or late. */
static uint32_t draw_ready(draft *d, const uint32_t *ready, uint32_t count, uint32_t slots_weigh)
{
    uint32_t slot = SLC_NONE;
    for (uint32_t r = 0; r < count; r++)
        if (ready[r] < d->slots) slot = r;
    if (slot == SLC_NONE) return draw(d, count);
    uint32_t at = draw(d, (uint64_t)(count - 1) * 8 + slots_weigh);
    return at < slots_weigh ? slot : ((at - slots_weigh) / 8 + slot + 1) % count;
}

/* Draws an order that keeps all edges. `starts` holds where each item's edges begin, and `open` how many predecessors
 * it still has. */
static void draw_order(draft *d, uint32_t *open, size_t *starts, uint32_t *ready, slc_order *order)
{
    uint32_t count = 0;
    static const uint32_t weights[] = {1, 8, 64};
    uint32_t slots_weigh = weights[draw(d, 3)];
    if (d->edge_count) qsort(d->edges, d->edge_count, sizeof *d->edges, by_before);
    for (size_t e = 0; e < d->edge_count; e++) {
        open[d->edges[e].after]++;
        starts[d->edges[e].before + 1]++;
    }
    for (uint32_t i = 0; i < d->items.count; i++) {
        starts[i + 1] += starts[i];
        if (!open[i]) ready[count++] = i;
    }
    while (count) {
        uint32_t r = draw_ready(d, ready, count, slots_weigh), item = ready[r];
        slc_order_append(order, d->items.items[item]);
        ready[r] = ready[--count];
        for (size_t e = starts[item]; e < starts[item + 1]; e++)
            if (!--open[d->edges[e].after]) ready[count++] = d->edges[e].after;
    }
}

static void order_pass(const slc_scheduling *in, bool evaluate, slc_order *order)
{
    const slc_job *job = in->job;
    draft d = {.in = in,
               .job = job,
               .evaluate = evaluate,
               .slots_a_pass = evaluate ? job->layer_count : slc_job_slots(job),
               .slots = evaluate ? job->layer_count : slc_job_slots(job) * job->micro_batches};
    add_all(&d);
    uint32_t *open = calloc((size_t)d.items.count + 1, sizeof *open);
    uint32_t *ready = calloc((size_t)d.items.count + 1, sizeof *ready);
    size_t *starts = calloc((size_t)d.items.count + 2, sizeof *starts);
    if (open && ready && starts && !d.failed)
        draw_order(&d, open, starts, ready, order);
    else
        order->failed = true;
    free(starts);
    free(ready);
    free(open);
    free(d.edges);
    slc_order_fini(&d.items);
}

static void train(const slc_scheduling *in, slc_order *order)
{
    order_pass(in, false, order);
}

static void evaluate(const slc_scheduling *in, slc_order *order)
{
    order_pass(in, true, order);
}

const slc_scheduler slc_scheduler_random = {
    .name = "random",
    .doc = "any legal order, drawn from a seed; for tests",
    .train = train,
    .evaluate = evaluate,
};
