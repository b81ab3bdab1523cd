/* Makes one change at a time, each aimed at the fullest moment, or at one in which a buffer lies above the limit;
 * changes that make the arena larger are undone. Until what lives at once is within the limit nothing is packed. From
 * then on buffers stay where they are as long as they can, as in the local search. sched/joint/joint_test.c covers this
 * file. */
#include "sched/search/fit_order.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "sched/search/fullest.h"
#include "sched/layout/make_plan.h"
#include "sched/layout/parts.h"

#include <stdlib.h>
#include <string.h>

static const double PACKING_SHARE = 0.25; /* packing anew may take so much work, changes that keep places take 1 */
enum { FIT_STREAM = 0xf1, MOST_TRIES = 20000, PATIENCE = 2000, PACKING_TRIES = 60 };

typedef struct {
    const slc_scheduling *in;
    const slc_scheduler *scheduler;
    const slc_job *job;
    const slc_plan *plan;        /* laid out */
    uint32_t moment;             /* the item at which less should live */
    double packing_s, keeping_s; /* nominal seconds of packing anew, and of changes that keep places */
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

/* Moves the gather after the moment if its window begins later. */
static bool postpone(fitting *f, slc_order *order, uint32_t gather)
{
    const slc_item *item = &order->items[gather];
    slc_window window;
    if (!slc_unit_window(f->job, &f->job->units[item->unit], true, item->index, &window)) return false;
    uint32_t needed = slot_item(f, item->micro_batch, window.first_slot);
    if (gather > f->moment || needed <= f->moment) return false;
    slc_order_shift(order, gather, f->moment + (uint32_t)draw(f, needed - f->moment));
    return true;
}

static bool frees(const slc_item *item, const slc_item *end)
{
    return (item->kind == SLC_ITEM_REDUCE_SCATTER || item->kind == SLC_ITEM_UPDATE) && item->late == end->late &&
           item->unit == end->unit && item->micro_batch == end->micro_batch && slc_share_blocks(item, end);
}

/* Moves late items back into the step that they belong to, right before the moment. */
static bool call_back(fitting *f, slc_order *order, const slc_item *end)
{
    uint32_t called = 0;
    for (uint32_t i = 0; i + called < f->moment; i++)
        while (i + called < f->moment && frees(&order->items[i], end)) {
            slc_order_shift(order, i, f->moment - 1);
            order->items[f->moment - 1].late = false;
            called++;
        }
    return called;
}

/* Moves the item that ends the claim before the moment, and before it those that it waits for on the same blocks. */
static bool hurry(fitting *f, slc_order *order, uint32_t last)
{
    const slc_item end = order->items[last];
    uint32_t to = f->moment;
    if (end.unit == SLC_NONE) return false;
    if (end.late) return last < to && call_back(f, order, &end);
    for (uint32_t i = to; i <= last && last > to; i++)
        if (frees(&order->items[i], &end)) slc_order_shift(order, i, to++);
    return to > f->moment;
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
        if (slc_claim_alive(program, claim, f->moment) && draw(f, ++seen) == 0) chosen = c;
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

/* Returns true if what lives at once is too much; then the plan is not packed, and arena_bytes is that sum. */
static bool is_over(const fitting *f, const slc_plan *plan)
{
    return plan->lower_bound > f->in->limit;
}

/* Returns true if the plan is at least as near to the limit as the other one. */
static bool is_as_near(const fitting *f, const slc_plan *plan, const slc_plan *other)
{
    if (is_over(f, plan) != is_over(f, other)) return is_over(f, other);
    return plan->arena_bytes <= other->arena_bytes;
}

/* Chooses the moment that a change should relieve: in a packed plan every other time one at which a buffer that ends
 * above the limit comes to life, else the fullest one. */
static sluice_status choose_moment(fitting *f)
{
    const slc_program *program = &f->plan->train;
    uint64_t bytes, seen = 0;
    const bool above = !is_over(f, f->plan) && draw(f, 2);
    for (uint32_t c = 0; above && c < program->claim_count; c++) {
        const slc_claim *claim = &program->claims[c];
        const bool is_above = f->plan->buffers[claim->buffer].offset + claim->end_byte > f->in->limit;
        if (is_above && draw(f, ++seen) == 0) f->moment = claim->from;
    }
    return seen ? SLUICE_OK : slc_fullest_item(program, &f->moment, &bytes);
}

/* Lays the changed order out from the places of the plan `now`, or anew if there are none, or if these do not do. */
static sluice_status lay_out(fitting *f, const slc_order *work, const slc_plan *now, slc_plan **plan)
{
    slc_work none = {0};
    const slc_work *spent = f->in->work ? f->in->work : &none;
    const double begun_s = spent->spent_s;
    sluice_status status = SLUICE_OK;
    if (!is_over(f, now)) {
        status = slc_plan_lay_out_like(f->in, work, f->scheduler, now, plan);
        f->keeping_s += spent->spent_s - begun_s;
        if (status || (*plan && is_as_near(f, *plan, now)) || f->packing_s > PACKING_SHARE * f->keeping_s)
            return status;
        slc_plan_destroy(*plan);
    }
    const double kept_s = spent->spent_s;
    status = slc_plan_lay_out(f->in, work, f->scheduler, PACKING_TRIES, plan);
    if (!is_over(f, now)) f->packing_s += spent->spent_s - kept_s;
    return status;
}

/* Makes one change of `order`, and keeps it with its plan if that is no farther from the limit. */
static sluice_status try_once(fitting *f, slc_order *order, slc_plan **now, bool *nearer)
{
    slc_order work;
    slc_plan *plan = NULL;
    *nearer = false;
    if (!copy_order(&work, order)) return slc_error(SLUICE_ERR_MEMORY, "plan");
    sluice_status status = SLUICE_OK;
    bool changed = relieve(f, &work);
    if (changed) slc_order_settle_agreement(&work, f->job);
    if (changed) status = lay_out(f, &work, *now, &plan);
    if (!status && plan && is_as_near(f, plan, *now)) {
        slc_plan *swap = *now;
        slc_order kept = *order;
        *nearer = !is_as_near(f, swap, plan);
        *now = plan;
        *order = work;
        plan = swap;
        work = kept;
    }
    slc_plan_destroy(plan);
    slc_order_fini(&work);
    return status;
}

/* Makes the plan of an order that fits: packed by time, or if that packing is too large, with the places of `now`. */
static sluice_status make_plan(const fitting *f, const slc_order *order, const slc_plan *now, slc_plan **plan,
                               uint64_t *arena_bytes, slc_forecast *forecast)
{
    slc_trying trying = {.tries = PACKING_TRIES, .in_time = true, .like = now};
    sluice_status status = slc_plan_try(f->in, order, f->scheduler, &trying, plan, arena_bytes, forecast);
    if (status || *plan) return status;
    uint64_t *places = malloc(((size_t)now->buffer_count + 1) * sizeof *places);
    if (!places) return slc_error(SLUICE_ERR_MEMORY, "plan");
    for (uint32_t b = 0; b < now->buffer_count; b++) places[b] = now->buffers[b].offset;
    trying = (slc_trying){.like = now, .places = places, .only_places = true};
    status = slc_plan_try(f->in, order, f->scheduler, &trying, plan, arena_bytes, forecast);
    if (!status && *plan) status = slc_plan_find_bound(*plan, f->in->work);
    free(places);
    return status;
}

sluice_status slc_fit_order(const slc_scheduling *in, const slc_scheduler *scheduler, double until_s, slc_order *order,
                            slc_plan **plan, uint64_t *arena_bytes, slc_forecast *forecast)
{
    fitting f = {.in = in, .scheduler = scheduler, .job = in->job};
    slc_plan *now = NULL;
    *plan = NULL;
    *arena_bytes = UINT64_MAX;
    sluice_status status = slc_plan_lay_out(in, order, scheduler, PACKING_TRIES, &now);
    if (status || !now) return status;
    for (uint32_t t = 0, idle = 0; t < MOST_TRIES && idle < PATIENCE && now->arena_bytes > in->limit; t++, idle++) {
        bool nearer;
        if (until_s > 0 && slc_work_is_over(in->work, until_s)) break;
        f.plan = now;
        status = choose_moment(&f);
        if (!status) status = try_once(&f, order, &now, &nearer);
        if (status) break;
        if (nearer) idle = 0;
    }
    *arena_bytes = now->arena_bytes;
    if (!status && now->arena_bytes <= in->limit) status = make_plan(&f, order, now, plan, arena_bytes, forecast);
    slc_plan_destroy(now);
    return status;
}
