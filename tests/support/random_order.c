/* Each run of blocks gets a random moment between what it needs and what needs it; then all are sorted. */
#include "tests/support/random_order.h"

#include "lib/base/numbers/random.h"
#include "lib/plan/strategy_table.h"
#include "tests/support/seed.h"

#include <stdlib.h>
#include <string.h>

/* An item and its moment: slot i of a step starts at i, and the first slot of the next step at `slots`. */
typedef struct {
    slc_item item;
    double at;
} random_moment;

typedef struct {
    const slc_scheduling *in;
    uint64_t drawn;
    uint32_t slots;
    random_moment *moments;
    size_t count, room;
    double agreed; /* when the ranks agree; with a barrier updates begin after it */
} random_order;

static uint64_t random_order_below(random_order *o, uint64_t limit)
{
    return slc_random_below(test_seed(o->in->seed), 77, o->drawn++, (uint32_t)limit);
}

/* A moment between the two, often close to one of them, where waits are tight. */
static double random_order_between(random_order *o, double low, double high)
{
    double share = (double)(1 + random_order_below(o, 998)) / 1000;
    switch (random_order_below(o, 4)) {
    case 0: share *= 1e-3; break;
    case 1: share = 1 - share * 1e-3; break;
    default: break;
    }
    return low + (high - low) * share;
}

static void random_order_put(random_order *o, slc_item item, double at)
{
    if (o->count == o->room) {
        o->room = o->room ? 2 * o->room : 256;
        o->moments = realloc(o->moments, o->room * sizeof *o->moments);
        if (!o->moments) abort();
    }
    o->moments[o->count++] = (random_moment){item, at};
}

/* The latest moment of those runs of a kind that share blocks with [first, first + count). */
static double random_order_latest(const random_order *o, slc_item_kind kind, uint32_t m, uint32_t unit, uint64_t first,
                                  uint64_t count)
{
    double latest = -0.5;
    for (size_t i = 0; i < o->count; i++) {
        const slc_item *item = &o->moments[i].item;
        if (item->kind != kind || item->micro_batch != m || item->unit != unit) continue;
        if (item->first_block < first + count && first < item->first_block + item->block_count &&
            o->moments[i].at > latest)
            latest = o->moments[i].at;
    }
    return latest;
}

/* Cuts an operation of a unit in runs, each between `high` and the later of `low` and the runs of the kinds `after`
 * that share its blocks, whose moments count as `after_back` earlier. */
static void random_order_runs(random_order *o, slc_item item, double low, double high, const slc_item_kind *after,
                              double after_back)
{
    uint64_t blocks = slc_unit_blocks(&o->in->job->units[item.unit]);
    uint64_t most = random_order_below(o, 3) ? 1 + random_order_below(o, blocks < 6 ? blocks : 6) : blocks;
    if (blocks / most > 12) most = blocks / 12; /* few runs keep tests short */
    bool whole = o->in->strategies[item.unit] == SLC_ONEBIT;
    for (uint64_t b = 0; b < blocks;) {
        uint64_t left = blocks - b, count = whole ? blocks : 1 + random_order_below(o, most < left ? most : left);
        double from = low;
        for (const slc_item_kind *k = after; k && *k != SLC_ITEM_KINDS; k++) {
            double over = random_order_latest(o, *k, o->in->job->micro_batches - 1, item.unit, b, count) - after_back;
            if (over > from) from = over;
        }
        item.first_block = b;
        item.block_count = count;
        random_order_put(o, item, random_order_between(o, from, high));
        b += count;
    }
}

static double random_order_later(double a, double b)
{
    return a > b ? a : b;
}

/* A split unit and its rows are reduced in turns, because sums are added in this order. */
static void random_order_split_reductions(random_order *o, uint32_t u)
{
    const slc_job *job = o->in->job;
    uint32_t first, last, rows = job->units[u].partner, per = slc_job_slots(job);
    uint32_t rows_slot = slc_backward_slot(job, job->units[rows].uses[0].layer);
    slc_unit_gradient_slots(job, &job->units[u], &first, &last);
    for (uint32_t m = job->each ? 0 : job->micro_batches - 1; m < job->micro_batches; m++) {
        bool final = m + 1 == job->micro_batches;
        double high = final ? o->slots - 0.5 : (m + 1) * per + job->units[rows].uses[0].layer, before = -0.5;
        if (m) before = random_order_latest(o, SLC_ITEM_REDUCE_SCATTER, m - 1, rows, 0, 1);
        slc_item item = {.kind = SLC_ITEM_REDUCE_SCATTER, .micro_batch = m, .unit = u};
        if (!final && high > (m + 1) * per + first) high = (m + 1) * per + first;
        random_order_runs(o, item, random_order_later(m * per + last, before), high, NULL, 0);
        item.unit = rows;
        before = random_order_latest(o, SLC_ITEM_REDUCE_SCATTER, m, u, 0, UINT32_MAX);
        random_order_runs(o, item, random_order_later(m * per + rows_slot, before), high, NULL, 0);
    }
}

/* A unit's operations that come before the agreement. */
static void random_order_reductions(random_order *o, uint32_t u)
{
    const slc_job *job = o->in->job;
    slc_unit_operations of = slc_operations_of(job, &job->units[u], o->in->strategies[u]);
    if (job->units[u].role == SLC_UNIT_SPLIT) random_order_split_reductions(o, u);
    if (of.update == SLC_ITEM_KINDS || job->units[u].role == SLC_UNIT_SPLIT) return;
    const slc_item_kind kinds[] = {of.reduce, of.inspect, of.compress};
    uint32_t first, last, per = slc_job_slots(job);
    slc_unit_gradient_slots(job, &job->units[u], &first, &last);
    for (uint32_t m = job->each ? 0 : job->micro_batches - 1; m < job->micro_batches; m++) {
        bool final = m + 1 == job->micro_batches;
        double high = final ? (double)o->slots + job->units[u].uses[0].layer : (double)((m + 1) * per + first);
        if (final && (job->barrier || random_order_below(o, 3) == 0)) high = o->slots - 0.5;
        for (int k = 0; k < 3; k++) {
            if (kinds[k] == SLC_ITEM_KINDS || !slc_precedes_agreement(job, kinds[k])) continue;
            const slc_item_kind after[] = {k ? of.reduce : SLC_ITEM_KINDS, SLC_ITEM_KINDS}; /* INSPECT or COMPRESS */
            random_order_runs(o, (slc_item){.kind = kinds[k], .micro_batch = m, .unit = u}, (double)(m * per + last),
                              high, after, 0);
        }
    }
}

/* A unit's operations from the reduced gradients on. */
static void random_order_applied(random_order *o, uint32_t u)
{
    const slc_job *job = o->in->job;
    slc_unit_operations of = slc_operations_of(job, &job->units[u], o->in->strategies[u]);
    if (of.update == SLC_ITEM_KINDS) return;
    bool waits = slc_waits_for_agreement(job, o->in->strategies[u]), onebit = of.compress != SLC_ITEM_KINDS;
    const slc_item_kind reduced[] = {onebit ? SLC_ITEM_EXCHANGE : of.reduce, of.gather_gradient, SLC_ITEM_KINDS};
    const slc_item_kind updated[] = {SLC_ITEM_UPDATE, SLC_ITEM_KINDS};
    const slc_item_kind inspected[] = {SLC_ITEM_INSPECT, SLC_ITEM_KINDS},
                        packed[] = {SLC_ITEM_COMPRESS, SLC_ITEM_KINDS};
    double high = (double)o->slots + job->units[u].uses[0].layer, low = waits ? o->agreed : 0;
    if (random_order_below(o, 3) == 0 && low < o->slots - 0.5) {
        slc_item_kind before = !onebit ? of.reduce : waits ? SLC_ITEM_INSPECT : SLC_ITEM_COMPRESS;
        double all = random_order_latest(o, before, job->micro_batches - 1, u, 0, UINT32_MAX);
        if (all < o->slots - 0.5) high = o->slots - 0.5; /* nothing of this unit is late */
    }
    slc_item item = {.micro_batch = job->micro_batches - 1, .unit = u};
    if (of.gather_gradient != SLC_ITEM_KINDS) {
        item.kind = of.gather_gradient;
        random_order_runs(o, item, 0, high, reduced, 0);
    }
    if (onebit && waits) {
        item.kind = SLC_ITEM_COMPRESS;
        random_order_runs(o, item, low, high, inspected, 0);
    }
    if (onebit) {
        item.kind = SLC_ITEM_EXCHANGE;
        random_order_runs(o, item, low, high, packed, 0);
    }
    item.kind = of.update;
    if (job->units[u].role == SLC_UNIT_SPLIT)
        low = random_order_later(
            low, random_order_latest(o, of.reduce, job->micro_batches - 1, job->units[u].partner, 0, 1));
    random_order_runs(o, item, low, job->units[u].role == SLC_UNIT_SPLIT ? o->slots - 0.5 : high, reduced, 0);
    if (of.gather_value == SLC_ITEM_KINDS) return;
    item.kind = of.gather_value;
    random_order_runs(o, item, low, high, updated, 0);
}

/* Windows are gathered in the step that uses them, after the update of the step before. */
static void random_order_windows(random_order *o, uint32_t u)
{
    const slc_job *job = o->in->job;
    const slc_item_kind updated[] = {SLC_ITEM_UPDATE, SLC_ITEM_KINDS};
    slc_window window;
    for (uint32_t w = 0; slc_unit_window(job, &job->units[u], true, w, &window); w++)
        for (uint32_t m = 0; m < job->micro_batches; m++) {
            double start = (double)(m * slc_job_slots(job)), low = -0.5;
            if (m) low = start - slc_job_slots(job) + window.last_slot;
            if (m && job->units[u].role == SLC_UNIT_ROWS) /* only then it is known which rows */
                low = random_order_later(start - 1, random_order_latest(o, SLC_ITEM_REDUCE_SCATTER, m - 1, u, 0, 1));
            random_order_runs(o, (slc_item){.kind = SLC_ITEM_GATHER_WINDOW, .micro_batch = m, .unit = u, .index = w},
                              low, start + window.first_slot, updated, o->slots);
        }
}

static int random_order_compare(const void *a, const void *b)
{
    double x = ((const random_moment *)a)->at, y = ((const random_moment *)b)->at;
    return (x > y) - (x < y);
}

/* The agreement comes after all last reductions. */
static void random_order_agree(random_order *o)
{
    const slc_job *job = o->in->job;
    double low = job->micro_batches * slc_job_slots(job) - 1;
    for (size_t i = 0; i < o->count; i++)
        if (o->moments[i].item.kind != SLC_ITEM_GATHER_WINDOW && o->moments[i].at > low) low = o->moments[i].at;
    double high = job->barrier || (low < o->slots - 0.5 && random_order_below(o, 2)) ? o->slots - 0.5
                                                                                     : low + (2 * o->slots - low) / 2;
    o->agreed = random_order_between(o, low, high);
    random_order_put(o, (slc_item){.kind = SLC_ITEM_AGREE, .micro_batch = job->micro_batches - 1, .unit = SLC_NONE},
                     o->agreed);
}

void random_order_make(const slc_scheduling *in, slc_order *order)
{
    const slc_job *job = in->job;
    random_order o = {.in = in, .slots = slc_job_slots(job) * job->micro_batches};
    for (uint32_t u = 0; u < job->unit_count; u++) random_order_reductions(&o, u);
    random_order_agree(&o);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        random_order_applied(&o, u);
        if (in->strategies[u] == SLC_FSDP) random_order_windows(&o, u);
    }
    for (uint32_t i = 0; i < o.slots; i++)
        random_order_put(&o,
                         (slc_item){.kind = SLC_ITEM_SLOT,
                                    .micro_batch = i / slc_job_slots(job),
                                    .slot = i % slc_job_slots(job),
                                    .unit = SLC_NONE},
                         i);
    for (size_t i = 0; i < o.count; i++)
        if (o.moments[i].at > o.slots - 0.5) {
            o.moments[i].item.late = true;
            o.moments[i].at -= o.slots;
        }
    qsort(o.moments, o.count, sizeof *o.moments, random_order_compare);
    for (size_t i = 0; i < o.count; i++) {
        const slc_item *item = &o.moments[i].item;
        if (item->kind == SLC_ITEM_SLOT)
            slc_order_slot(order, item->micro_batch, item->slot);
        else
            slc_order_run(order, item->kind, item->late, item->micro_batch, item->unit, item->index, item->first_block,
                          item->block_count);
    }
    free(o.moments);
}
