/* Makes one change at a time, each aimed at the fullest moment; changes that make the arena larger are undone.
 * sched/joint/joint_test.c covers this file. */
#include "sched/search/fit_order.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "sched/search/fullest.h"
#include "sched/layout/make_plan.h"

#include <stdlib.h>
#include <string.h>

enum { FIT_STREAM = 0xf1, MOST_TRIES = 600, PATIENCE = 150, PACKING_TRIES = 60 };

typedef struct {
    const slc_job *job;
    const slc_plan *plan; /* laid out */
    uint32_t fullest;     /* number of the fullest item */
    uint64_t draws;
} fitting;

static uint64_t draw(fitting *f, uint64_t below)
{
    return slc_random_below(1, FIT_STREAM, f->draws++, below);
}

static uint32_t slot_item(const fitting *f, uint32_t micro_batch, uint32_t slot)
{
    const slc_program *program = &f->plan->train;
    for (uint32_t i = 0; i < program->item_count; i++)
        if (program->items[i].kind == SLC_ITEM_SLOT && program->items[i].micro_batch == micro_batch &&
            program->items[i].slot == slot)
            return i;
    return 0;
}

/* Moves the gather after the fullest item if its window begins later. */
static bool postpone(fitting *f, slc_order *order, uint32_t gather)
{
    const slc_item *item = &order->items[gather];
    slc_window window;
    if (!slc_unit_window(f->job, &f->job->units[item->unit], true, item->index, &window)) return false;
    uint32_t needed = slot_item(f, item->micro_batch, window.first_slot);
    if (gather > f->fullest || needed <= f->fullest) return false;
    slc_order_shift(order, gather, f->fullest + (uint32_t)draw(f, needed - f->fullest));
    return true;
}

static bool frees(const slc_item *item, const slc_item *end)
{
    return (item->kind == SLC_ITEM_REDUCE_SCATTER || item->kind == SLC_ITEM_UPDATE) && item->late == end->late &&
           item->unit == end->unit && item->micro_batch == end->micro_batch && slc_share_blocks(item, end);
}

/* Moves late items back into the step that they belong to. They were before the fullest item, which so moves down. */
static bool call_back(fitting *f, slc_order *order, const slc_item *end)
{
    uint32_t called = 0;
    for (uint32_t i = 0; i + called < f->fullest; i++)
        while (i + called < f->fullest && frees(&order->items[i], end)) {
            slc_order_shift(order, i, f->fullest - 1);
            order->items[f->fullest - 1].late = false;
            called++;
        }
    return called;
}

/* Moves the item that ends the claim before the fullest item, and before it those that it waits for on the same
 * blocks. */
static bool hurry(fitting *f, slc_order *order, uint32_t last)
{
    const slc_item end = order->items[last];
    uint32_t to = f->fullest;
    if (end.unit == SLC_NONE) return false;
    if (end.late) return last < to && call_back(f, order, &end);
    for (uint32_t i = to; i <= last && last > to; i++)
        if (frees(&order->items[i], &end)) slc_order_shift(order, i, to++);
    return to > f->fullest;
}

static bool relieve(fitting *f, slc_order *order)
{
    const slc_program *program = &f->plan->train;
    uint32_t chosen = SLC_NONE;
    uint64_t seen = 0;
    for (uint32_t c = 0; c < program->claim_count; c++) {
        const slc_claim *claim = &program->claims[c];
        slc_buffer_kind kind = f->plan->buffers[claim->buffer].kind;
        if (kind != SLC_BUFFER_GATHERED && kind != SLC_BUFFER_GRADIENT) continue;
        if (slc_claim_alive(program, claim, f->fullest) && draw(f, ++seen) == 0) chosen = c;
    }
    if (chosen == SLC_NONE) return false;
    const slc_claim *claim = &program->claims[chosen];
    bool gathered = f->plan->buffers[claim->buffer].kind == SLC_BUFFER_GATHERED;
    return gathered ? postpone(f, order, claim->from) : hurry(f, order, claim->to);
}

static bool copy_order(slc_order *to, const slc_order *from)
{
    slc_item *items = malloc(((size_t)from->count + 1) * sizeof *items);
    if (!items) return false;
    memcpy(items, from->items, from->count * sizeof *items);
    *to = (slc_order){.items = items, .count = from->count, .capacity = from->count + 1};
    return true;
}

/* Makes one change of `order`, and keeps it with its plan if the arena does not grow. */
static sluice_status try_once(const slc_scheduling *in, const slc_scheduler *scheduler, fitting *f, slc_order *order,
                              slc_plan **now, bool *smaller)
{
    slc_order work;
    slc_plan *plan = NULL;
    *smaller = false;
    if (!copy_order(&work, order)) return slc_error(SLUICE_ERR_MEMORY, "plan");
    sluice_status status = SLUICE_OK;
    bool changed = relieve(f, &work);
    if (changed) slc_order_settle_agreement(&work, in->job);
    if (changed) status = slc_plan_lay_out(in, &work, scheduler, PACKING_TRIES, &plan);
    if (plan && plan->arena_bytes <= (*now)->arena_bytes) {
        slc_plan *swap = *now;
        slc_order kept = *order;
        *smaller = plan->arena_bytes < swap->arena_bytes;
        *now = plan;
        *order = work;
        plan = swap;
        work = kept;
    }
    slc_plan_destroy(plan);
    slc_order_fini(&work);
    return status;
}

sluice_status slc_fit_order(const slc_scheduling *in, const slc_scheduler *scheduler, double until_s, slc_order *order,
                            slc_plan **plan, uint64_t *arena_bytes, slc_forecast *forecast)
{
    fitting f = {.job = in->job};
    slc_plan *now = NULL;
    *plan = NULL;
    *arena_bytes = UINT64_MAX;
    sluice_status status = slc_plan_lay_out(in, order, scheduler, PACKING_TRIES, &now);
    if (status || !now) return status;
    for (uint32_t t = 0, idle = 0; t < MOST_TRIES && idle < PATIENCE && now->arena_bytes > in->limit; t++, idle++) {
        bool smaller;
        if (until_s > 0 && slc_work_is_over(in->work, until_s)) break;
        f.plan = now;
        uint64_t bytes;
        status = slc_fullest_item(&now->train, &f.fullest, &bytes);
        if (!status) status = try_once(in, scheduler, &f, order, &now, &smaller);
        if (status) break;
        if (smaller) idle = 0;
    }
    *arena_bytes = now->arena_bytes;
    if (!status && now->arena_bytes <= in->limit)
        status = slc_plan_try(in, order, scheduler, &(slc_trying){.tries = PACKING_TRIES, .in_time = true}, plan,
                              arena_bytes, forecast);
    slc_plan_destroy(now);
    return status;
}
