#include "tests/support/sched/legal_order.h"

#include "lib/plan/strategy_table.h"

enum { TEST_POOL = 2048 };

typedef struct {
    const slc_job *job;
    const slc_strategy *strategies;
    test_dice *dice;
    uint32_t lateness; /* how often an operation that may be late is late, in quarters */
    slc_item items[TEST_POOL];
    uint32_t count;
    uint64_t eager[TEST_POOL]; /* items with low values go first */
} test_pool;

bool runs_share_blocks(const slc_item *a, const slc_item *b)
{
    return a->unit == b->unit && a->first_block < b->first_block + b->block_count &&
           b->first_block < a->first_block + a->block_count;
}

static bool pool_is_reduction(const slc_item *item)
{
    return item->kind == SLC_ITEM_REDUCE_SCATTER || item->kind == SLC_ITEM_ALL_REDUCE;
}

static bool pool_waits(const slc_job *job, const slc_strategy *strategies, const slc_item *item)
{
    return job->barrier && !(job->norms_barrier && strategies[item->unit] == SLC_ONEBIT);
}

/* Returns true if the item must come before the agreement, which tells all ranks of gradients that are not finite. */
static bool pool_tells(const slc_job *job, const slc_strategy *strategies, const slc_item *item)
{
    return pool_is_reduction(item) || item->kind == SLC_ITEM_INSPECT ||
           (item->kind == SLC_ITEM_COMPRESS && !pool_waits(job, strategies, item));
}

/* True if `b`, an operation of one unit of a split parameter, must come after `a`, which is of the other unit in the
 * same step, or of the ROWS unit in an earlier micro-batch. */
static bool pool_split_feeds(const slc_job *job, const slc_item *a, const slc_item *b)
{
    if (a->kind != SLC_ITEM_REDUCE_SCATTER || b->unit == SLC_NONE) return false;
    const slc_unit *mine = &job->units[b->unit];
    bool rows = mine->role == SLC_UNIT_ROWS, partner = mine->role != SLC_UNIT_WHOLE && mine->partner == a->unit;
    switch (b->kind) {
    case SLC_ITEM_REDUCE_SCATTER:
        return partner && (rows ? a->micro_batch <= b->micro_batch : a->micro_batch < b->micro_batch);
    case SLC_ITEM_UPDATE: return partner;
    case SLC_ITEM_GATHER_WINDOW: return rows && a->unit == b->unit && a->micro_batch < b->micro_batch;
    default: return false;
    }
}

/* Returns true if `b` uses what `a` of the same step leaves. Neither is a slot. */
static bool pool_feeds(const slc_job *job, const slc_strategy *strategies, const slc_item *a, const slc_item *b)
{
    bool last = a->micro_batch + 1 == job->micro_batches;
    if (pool_split_feeds(job, a, b)) return true;
    switch (b->kind) {
    case SLC_ITEM_REDUCE_SCATTER:
        return a->kind == SLC_ITEM_REDUCE_SCATTER && a->micro_batch < b->micro_batch && runs_share_blocks(a, b);
    case SLC_ITEM_AGREE: return pool_tells(job, strategies, a) && last;
    case SLC_ITEM_INSPECT: return pool_is_reduction(a) && runs_share_blocks(a, b);
    case SLC_ITEM_COMPRESS:
        if (a->kind == SLC_ITEM_AGREE) return pool_waits(job, strategies, b);
        return (pool_is_reduction(a) || a->kind == SLC_ITEM_INSPECT) && runs_share_blocks(a, b);
    case SLC_ITEM_EXCHANGE: return a->kind == SLC_ITEM_COMPRESS && runs_share_blocks(a, b);
    case SLC_ITEM_GATHER_GRADIENT: return pool_is_reduction(a) && runs_share_blocks(a, b);
    case SLC_ITEM_UPDATE:
        if (a->kind == SLC_ITEM_AGREE) return pool_waits(job, strategies, b);
        return (pool_is_reduction(a) || a->kind == SLC_ITEM_GATHER_GRADIENT || a->kind == SLC_ITEM_EXCHANGE) &&
               runs_share_blocks(a, b);
    case SLC_ITEM_GATHER_VALUE: return a->kind == SLC_ITEM_UPDATE && runs_share_blocks(a, b);
    default: return false;
    }
}

static bool pool_draws_late(test_pool *p, const slc_item *item)
{
    if (item->kind == SLC_ITEM_GATHER_WINDOW || item->micro_batch + 1 != p->job->micro_batches) return false;
    slc_unit_role role = item->unit == SLC_NONE ? SLC_UNIT_WHOLE : p->job->units[item->unit].role;
    if (role == SLC_UNIT_ROWS || (role == SLC_UNIT_SPLIT && item->kind != SLC_ITEM_GATHER_VALUE)) return false;
    if (p->job->barrier && (item->kind == SLC_ITEM_AGREE || pool_tells(p->job, p->strategies, item))) return false;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->items[i].late && pool_feeds(p->job, p->strategies, &p->items[i], item)) return true;
    return test_below(p->dice, 4) < p->lateness;
}

static void pool_add(test_pool *p, slc_item item)
{
    item.late = item.kind != SLC_ITEM_SLOT && pool_draws_late(p, &item);
    if (p->count < TEST_POOL) p->items[p->count++] = item;
}

/* Adds all blocks of a unit in a few runs; under onebit in one. */
static void pool_cut(test_pool *p, slc_item_kind kind, uint32_t m, uint32_t u, uint32_t window)
{
    uint64_t blocks = slc_unit_blocks(&p->job->units[u]), first = 0;
    if (kind == SLC_ITEM_KINDS) return;
    uint32_t pieces = test_below(p->dice, 3) ? 1 + test_below(p->dice, 4) : 1;
    if (p->strategies[u] == SLC_ONEBIT) pieces = 1;
    while (first < blocks) {
        uint64_t count = pieces-- > 1 ? 1 + test_below(p->dice, (uint32_t)(blocks - first)) : blocks - first;
        pool_add(p, (slc_item){.kind = kind,
                               .micro_batch = m,
                               .unit = u,
                               .index = window,
                               .first_block = first,
                               .block_count = count});
        first += count;
    }
}

/* Operations are added after those that feed them, so that whatever a late one feeds becomes late too. */
static void pool_fill(test_pool *p)
{
    const slc_job *job = p->job;
    uint32_t last = job->micro_batches - 1;
    for (uint32_t m = 0; m <= last; m++)
        for (uint32_t s = 0; s < slc_job_slots(job); s++)
            pool_add(p, (slc_item){.kind = SLC_ITEM_SLOT, .micro_batch = m, .slot = s, .unit = SLC_NONE});
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_unit_operations of = slc_operations_of(job, &job->units[u], p->strategies[u]);
        slc_window window;
        for (uint32_t m = 0; m <= last; m++) {
            if (job->each || m == last) pool_cut(p, of.reduce, m, u, 0);
            if (m == last) pool_cut(p, of.inspect, m, u, 0);
            if (m == last && job->norms_barrier == job->barrier) pool_cut(p, of.compress, m, u, 0);
            for (uint32_t w = 0; of.windows && slc_unit_window(job, &job->units[u], true, w, &window); w++)
                pool_cut(p, SLC_ITEM_GATHER_WINDOW, m, u, w);
        }
    }
    pool_add(p, (slc_item){.kind = SLC_ITEM_AGREE, .micro_batch = last, .unit = SLC_NONE});
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_unit_operations of = slc_operations_of(job, &job->units[u], p->strategies[u]);
        if (job->norms_barrier != job->barrier) pool_cut(p, of.compress, last, u, 0);
        pool_cut(p, of.exchange, last, u, 0);
        pool_cut(p, of.gather_gradient, last, u, 0);
        pool_cut(p, of.update, last, u, 0);
        pool_cut(p, of.gather_value, last, u, 0);
    }
}

/* Returns true if the operation must come before the slot. */
static bool pool_operation_first(const slc_job *job, const slc_item *op, const slc_item *slot)
{
    const slc_unit *unit = &job->units[op->unit];
    uint32_t first, last;
    slc_window window;
    switch (op->kind) {
    case SLC_ITEM_GATHER_WINDOW:
        return slc_unit_window(job, unit, true, op->index, &window) && slot->micro_batch == op->micro_batch &&
               slot->slot == window.first_slot;
    case SLC_ITEM_REDUCE_SCATTER: /* the next micro-batch writes the gradient anew */
        slc_unit_gradient_slots(job, unit, &first, &last);
        return job->each && slot->micro_batch == op->micro_batch + 1 && slot->slot == first;
    case SLC_ITEM_UPDATE:
    case SLC_ITEM_GATHER_VALUE:
        return op->late && !slot->micro_batch && slot->slot == slc_forward_slot(unit->uses[0].layer);
    default: return false;
    }
}

static bool pool_slot_first(const slc_job *job, const slc_item *slot, const slc_item *op)
{
    const slc_unit *unit = &job->units[op->unit];
    uint32_t first, last;
    slc_window window;
    if (pool_is_reduction(op) || op->kind == SLC_ITEM_INSPECT || op->kind == SLC_ITEM_COMPRESS) {
        slc_unit_gradient_slots(job, unit, &first, &last);
        return !op->late && slot->micro_batch == op->micro_batch && slot->slot == last;
    }
    bool rows =
        unit->role == SLC_UNIT_ROWS && op->kind == SLC_ITEM_GATHER_WINDOW; /* only then does the caller name them */
    if (rows && slot->micro_batch + 1 == op->micro_batch && slot->slot + 1 == slc_job_slots(job)) return true;
    return op->kind == SLC_ITEM_GATHER_WINDOW && op->micro_batch && slot->micro_batch == op->micro_batch - 1 &&
           slc_unit_window(job, unit, true, op->index, &window) && slot->slot == window.last_slot;
}

/* Returns true if `a` must come before `b` in a pass. */
static bool pool_before(const test_pool *p, const slc_item *a, const slc_item *b)
{
    const slc_job *job = p->job;
    bool slot_a = a->kind == SLC_ITEM_SLOT, slot_b = b->kind == SLC_ITEM_SLOT;
    if (slot_a && slot_b)
        return a->micro_batch < b->micro_batch || (a->micro_batch == b->micro_batch && a->slot < b->slot);
    if (slot_a) return b->kind != SLC_ITEM_AGREE && pool_slot_first(job, a, b);
    if (slot_b) return a->kind != SLC_ITEM_AGREE && pool_operation_first(job, a, b);
    if (a->kind == SLC_ITEM_UPDATE && b->kind == SLC_ITEM_GATHER_WINDOW) return a->late && runs_share_blocks(a, b);
    return a->late == b->late && pool_feeds(job, p->strategies, a, b);
}

/* Puts updates of no, some or all units on the compute lane, except those of onebit units. */
static void test_lanes_draw(const slc_strategy *strategies, const test_dice *dice, slc_order *order)
{
    uint32_t often = test_beside(dice, 1000, 4);
    for (uint32_t i = 0; i < order->count; i++) {
        slc_item *item = &order->items[i];
        if (item->kind != SLC_ITEM_UPDATE || strategies[item->unit] == SLC_ONEBIT) continue;
        item->on_compute = test_beside(dice, 1001 + i, 3) < often;
    }
}

bool test_order_draw(const slc_job *job, const slc_strategy *strategies, test_dice *dice, slc_order *order)
{
    static test_pool p;
    static uint32_t waiting[TEST_POOL];
    p.job = job;
    p.strategies = strategies;
    p.dice = dice;
    p.lateness = test_below(dice, 4);
    p.count = 0;
    pool_fill(&p);
    if (p.count == TEST_POOL) return false;
    uint32_t bias = test_below(dice, 3); /* 0: slots tend to be early, 1: operations, 2: neither */
    for (uint32_t i = 0; i < p.count; i++) {
        bool favoured = bias < 2 && (p.items[i].kind == SLC_ITEM_SLOT) == !bias;
        p.eager[i] = test_below(dice, favoured ? 100 : 1000);
        waiting[i] = 0;
        for (uint32_t k = 0; k < p.count; k++) waiting[i] += pool_before(&p, &p.items[k], &p.items[i]);
    }
    for (uint32_t n = 0; n < p.count; n++) {
        uint32_t next = SLC_NONE;
        for (uint32_t i = 0; i < p.count; i++)
            if (!waiting[i] && (next == SLC_NONE || p.eager[i] < p.eager[next])) next = i;
        if (next == SLC_NONE) return false; /* there is a cycle; the caller's count of drawn orders shows it */
        const slc_item *item = &p.items[next];
        if (item->kind == SLC_ITEM_SLOT)
            slc_order_slot(order, item->micro_batch, item->slot);
        else
            slc_order_run(order, item->kind, item->late, item->micro_batch, item->unit, item->index, item->first_block,
                          item->block_count);
        waiting[next] = SLC_NONE;
        for (uint32_t i = 0; i < p.count; i++)
            if (waiting[i] != SLC_NONE) waiting[i] -= pool_before(&p, item, &p.items[i]);
    }
    test_lanes_draw(strategies, dice, order);
    return true;
}
